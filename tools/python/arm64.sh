#!/bin/sh
# arm64.sh DIR PACKAGE...: download Debian packages for arm64 and unpack them into DIR. Nothing is installed, and
# apt-get's package lists for arm64 are kept in DIR. If a package is missing, print that in one line and exit with code
# 1.
set -eu
mkdir -p "$1/apt/lists/partial" "$1/apt/archives/partial"
cd "$1"
shift
apt() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$PWD/apt" \
        -o Dir::Cache="$PWD/apt" "$@" >> apt/log 2>&1
}
apt update || true # other sources than Debian's may have nothing for arm64
(apt download "$@") || {
    echo "apt-get cannot download $* for arm64: $(tail -1 apt/log)" >&2
    exit 1
}
for package in *.deb; do dpkg-deb -x "$package" .; done
rm -r apt ./*.deb
