#!/bin/sh
# root.sh <release> <root>: makes the root folder of a container that has the server of an unpacked release and
# nothing else: no shell, no package manager. The programs are linked with the C library of Debian 12, so this
# runs on Debian 12 or later, as deploy/Containerfile does.
set -eu
release=$1
root=$2

install -D -m 755 "$release/platform-server" "$root/usr/bin/platform-server"
# The command line that the server hands out, which it finds beside itself.
if [ -d "$release/cli" ]; then
    cp -r "$release/cli" "$root/usr/bin/cli"
fi
# The libraries that the program is linked with, and what loads them.
ldd "$release/platform-server" | grep -o '/[^ ]*' | while read -r library; do
    install -D -m 755 "$library" "$root$library"
done
# The authorities that backends and identity providers have certificates of.
install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
# Names are looked up in /etc/hosts, then with DNS.
mkdir -p "$root/etc"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
echo 'platform:x:65532:65532:Game platform:/var/lib/platform:/usr/sbin/nologin' >"$root/etc/passwd"
echo 'platform:x:65532:' >"$root/etc/group"
install -d -m 700 "$root/var/lib/platform"
