#!/bin/sh
# deb.sh VERSION ABI LIBDIR DIR: DIR/*.deb out of DIR/all, where make has installed with PREFIX=/usr and that LIBDIR.
# `make deb` does both.
# Built for this machine's release of Debian, with what make found here; equal builds give equal bytes. DEBFULLNAME and
# DEBEMAIL say who maintains it, else git does.
set -eu
version=$1 abi=$2 lib=usr/$3
templates=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$4"
umask 022
export LC_ALL=C

of_git() { [ -e "$root/.git" ] && git -C "$root" log -1 --format="$1" 2> /dev/null; }
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(of_git %ct || stat -c %Y "$root/loader/base/version.h")}
export SOURCE_DATE_EPOCH
name=${DEBFULLNAME:-$(of_git %an || echo unknown)} mail=${DEBEMAIL:-$(of_git %ae || echo unknown@example.org)}

# What dpkg-gencontrol reads. The static libraries need what pkg-config --static says: the packages of its -l's headers.
mkdir debian
needs=$(for header in xxhash.h liburing.h jansson.h utf8proc.h pcre2.h zlib.h zstd.h; do
    file=$(echo "#include <$header>" | ${CC:-cc} -DPCRE2_CODE_UNIT_WIDTH=8 -E - |
        sed -n "s/^# 1 \"\(.*\/$header\)\".*/\1/p" | head -1)
    dpkg-query -S "$file"
done | sed 's/[:,].*//' | sort -u | paste -sd, | sed 's/,/, /g')
sed "s/@MAINTAINER@/$name <$mail>/; s/@DEV_NEEDS@/$needs/" "$templates/control.in" > debian/control
printf 'sgt (%s) unstable; urgency=medium\n\n  * Version %s, packaged by make deb.\n\n -- %s <%s>  %s\n' \
    "$version" "$version" "$name" "$mail" "$(date -uRd "@$SOURCE_DATE_EPOCH")" > debian/changelog

# The one installation, in parts.
strip --strip-unneeded --remove-section=.comment all/usr/bin/* "all/$lib"/*.so."$abi"
[ ! -d all/usr/lib/sgt ] || strip --strip-unneeded --remove-section=.comment all/usr/lib/sgt/*
strip --strip-debug --remove-section=.comment --enable-deterministic-archives "all/$lib"/*.a
find all/usr/share/man -type f -exec gzip -9n {} +
take() { # PACKAGE FILE...: of all
    package=$1
    shift
    for file in "$@"; do
        mkdir -p "$package/$(dirname "$file")"
        mv "all/$file" "$package/$file"
    done
}
for l in loader tokenize; do
    take "libsgt-$l$abi" "$lib/libsgt-$l.so.$abi"
    take libsgt-dev "$lib/libsgt-$l.so" "$lib/libsgt-$l.a"
done
take libsgt-dev "$lib/pkgconfig" usr/include usr/share/man/man3
rmdir "all/$lib"
mv all sgt

for package in libsgt-loader$abi libsgt-tokenize$abi libsgt-dev sgt; do
    doc=$package/usr/share/doc/$package control=$package/DEBIAN
    mkdir -p "$doc" "$control"
    sed "s/@YEAR@/$(date -ud "@$SOURCE_DATE_EPOCH" +%Y)/" "$templates/copyright" > "$doc/copyright"
    gzip -9nc debian/changelog > "$doc/changelog.gz"
    case $package in
    sgt)
        set -- -dDepends "$PWD"/sgt/usr/bin/* -dSuggests
        for file in "$PWD"/sgt/usr/lib/sgt/*.so; do [ ! -e "$file" ] || set -- "$@" "$file"; done
        dpkg-shlibdeps -Tsubstvars --warnings=0 "$@"
        grep -q '^shlibs:Suggests=' substvars || echo 'shlibs:Suggests=' >> substvars ;; # without CUDA and MPI
    libsgt-dev) : > substvars ;;
    *)
        dpkg-shlibdeps -Tsubstvars --warnings=0 "$PWD/$package/$lib"/*.so.*
        echo "${package%"$abi"} $abi $package (>= $version)" > "$control/shlibs"
        echo 'activate-noawait ldconfig' > "$control/triggers" ;;
    esac
    dpkg-gencontrol -p"$package" -P"$package" -Tsubstvars -fdebian/files
    (cd "$package" && find usr -type f -exec md5sum {} + | sort -k 2 > DEBIAN/md5sums)
    find "$package" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$package" .
done
