#!/bin/sh
# prepare.sh <release> <folder>: makes the folder from which deploy/Containerfile builds an image. It has the server
# of an unpacked release, the C library and the certificates of authorities of this machine, and nothing else: no
# shell, no package manager. This machine must be able to run the server: Debian 12, or another one with glibc 2.36.
set -eu
release=$1
folder=$2
system=$folder/system

if [ -e "$folder" ]; then
    echo "$folder is there already: remove it, or name another folder" >&2
    exit 1
fi
(cd "$release" && sha256sum --check --quiet SHA256SUMS)
# What starts here starts with the same libraries elsewhere.
"$release/platform-server" --version >/dev/null
# Debian's, else Fedora's.
authorities=/etc/ssl/certs/ca-certificates.crt
[ -f "$authorities" ] || authorities=/etc/pki/tls/certs/ca-bundle.crt
if [ ! -f "$authorities" ]; then
    echo "this machine has no certificates of authorities: install ca-certificates" >&2
    exit 1
fi

install -D -m 755 "$release/platform-server" "$system/usr/bin/platform-server"
# The command line that the server hands out, which it finds beside itself.
if [ -d "$release/cli" ]; then
    cp -r "$release/cli" "$system/usr/bin/cli"
fi
# The libraries that the program is linked with, and what loads them.
ldd "$release/platform-server" | grep -o '/[^ ]*' | while read -r library; do
    install -D -m 755 "$library" "$system$library"
done
# The authorities that backends and identity providers have certificates of.
install -D -m 644 "$authorities" "$system/etc/ssl/certs/ca-certificates.crt"
# Names are looked up in /etc/hosts, then with DNS.
echo 'hosts: files dns' >"$system/etc/nsswitch.conf"
echo 'platform:x:65532:65532:Game platform:/var/lib/platform:/usr/sbin/nologin' >"$system/etc/passwd"
echo 'platform:x:65532:' >"$system/etc/group"
install -d -m 755 "$system/var/lib"
# The Containerfile gives it to the user, which needs no rights here.
install -d -m 700 "$folder/data/platform"
