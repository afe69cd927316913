#!/bin/sh
# Installs the command line of {{ origin }} for the user who runs this:
#
#     curl -fsSL {{ origin }}/cli/install.sh | sh
#
# PLATFORM_INSTALL_FOLDER names another folder than ~/.local/bin.
set -eu

{% if programs.is_empty() -%}
echo "error: {{ origin }} has no programs to install. {{ origin }}/cli says what to do instead." >&2
exit 1
{% else -%}
origin='{{ origin }}'

fail() {
    echo "error: $1" >&2
    exit 1
}

# fetch <address> <file>
fetch() {
    if command -v curl >/dev/null; then
        curl -fsSL -o "$2" "$1"
    elif command -v wget >/dev/null; then
        wget -q -O "$2" "$1"
    else
        fail "curl or wget is needed."
    fi
}

# sum_of <file>: its SHA-256.
sum_of() {
    if command -v sha256sum >/dev/null; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif command -v shasum >/dev/null; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    else
        fail "sha256sum or shasum is needed."
    fi
}

# Where no setting and no sign-in names another platform, the commands take the one that they came
# from. If this cannot be written, they need --origin at the first sign-in.
remember() {
    case ${XDG_CONFIG_HOME:-} in
    /*) config=$XDG_CONFIG_HOME/platform ;;
    *) config=${HOME:-/nonexistent}/.config/platform ;;
    esac
    (umask 077 && mkdir -p "$config" && echo "origin = \"$origin\"" >"$config/.installed.new" &&
        mv -f "$config/.installed.new" "$config/installed.toml") 2>/dev/null || :
}

# Nothing is done before the whole script has arrived: its last line calls this.
install() {
    machine="$(uname -s) $(uname -m)"
    case $machine in
{%- for program in programs %}
    {{ program.uname }})
        archive='{{ program.name }}'
        expected='{{ program.sha256 }}'
        ;;
{%- endfor %}
    *) fail "There is no program for $machine. $origin/cli says what to do instead." ;;
    esac
    folder=${PLATFORM_INSTALL_FOLDER:-$HOME/.local/bin}
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    fetch "$origin/cli/$archive" "$work/$archive" || fail "$origin/cli/$archive could not be fetched."
    if [ "$(sum_of "$work/$archive")" != "$expected" ]; then
        fail "$archive is damaged: its SHA-256 is not $expected. Try again."
    fi
    tar -xzf "$work/$archive" -C "$work"
    mkdir -p "$folder"
    # Renamed into its place, so that a running program is replaced as a whole.
    cp "$work/${archive%.tar.gz}/platform" "$folder/.platform.new"
    mv -f "$folder/.platform.new" "$folder/platform"
    version=$("$folder/platform" --version) || fail "$folder/platform does not run on this machine."
    remember
    echo "Installed $version as $folder/platform."
    case ":$PATH:" in
    *":$folder:"*) ;;
    *) echo "Add $folder to PATH: export PATH=\"$folder:\$PATH\"" ;;
    esac
    echo "Next: platform login --origin $origin"
}

install
{% endif -%}
