#!/bin/sh
# dist.sh VERSION OUT: the sources as OUT, a .tar.gz of one folder sgt-VERSION. What git tracks, as it is here; from
# where there is no git, what a tree of sources has. Equal files give equal bytes: sorted, owned by root, of one date,
# git's last commit, or the newest file's.
set -eu
cd "$(dirname "$0")/.."
version=$1 out=$2
umask 022
mkdir -p "$(dirname "$out")"
work=$(mktemp -d "${TMPDIR:-/tmp}/sgt-dist.XXXXXX")
part=$(mktemp "$out.XXXXXX")
trap 'rm -rf "$work" "$part"' EXIT
list=$work/list

if [ -e .git ]; then
    git ls-files -z > "$list"
    date=@$(git log -1 --format=%ct)
    [ -z "$(git status --porcelain)" ] || echo "dist: with changes that git has not" >&2
else
    # Only these top-level names are sources; others, such as build and runs, are left out.
    find Makefile README.md .[a-z]* tokenize loader train kernels tools tests -type f ! -name '*.o' \
        ! -path '*/__pycache__/*' -print0 > "$list"
    date=$(xargs -0 stat -c %Y < "$list" | sort -n | tail -1)
    date=@$date
fi
LC_ALL=C sort -z -o "$list" "$list"
tar --create --file="$work/tar" --format=ustar --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="$date" \
    --transform "s,^,sgt-$version/," --no-recursion --null --files-from="$list"
gzip -9n < "$work/tar" > "$part"
chmod 644 "$part"
mv "$part" "$out"
echo "$out"
