#!/bin/sh
# wheel.sh BUILD FILES...: build the sdist, a wheel from each of the folders FILES, and, if SGT_CUDA_FILES is set, the
# wheel sgtokens-cuda from that folder. They are written to BUILD/wheel. If something is missing, print it in one line
# and exit with code 1.
set -eu
cd "$(dirname "$0")/../.."
build=$(cd "$1" && pwd)
shift
venv=$build/wheel-venv
log=$build/wheel.log
missing() {
    echo "make wheel needs $1" >&2
    exit 1
}

if ! "$venv/bin/python" -c 'import hatchling, auditwheel' 2> /dev/null; then
    python=${PYTHON:-python3}
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2> /dev/null || missing 'Python 3.9 or later'
    rm -rf "$venv"
    "$python" -m venv "$venv" > "$log" 2>&1 || missing "Python's venv (package python3-venv)"
    "$venv/bin/python" -m pip install --quiet hatchling auditwheel > "$log" 2>&1 ||
        missing "hatchling and auditwheel from PyPI, and pip could not install them: $(tail -1 "$log")"
fi

# build_target FOLDER TARGET: let hatchling build a wheel or an sdist.
build_target() {
    (cd "tools/python/$1" && "$venv/bin/python" -m hatchling build --target "$2" --directory "$build/wheel") \
        > "$log" 2>&1 ||
        { tail -20 "$log" >&2 && exit 1; }
}

rm -rf "$build/wheel"
mkdir -p "$build/wheel"
export SOURCE_DATE_EPOCH=1577836800
build_target . sdist
for files; do SGT_WHEEL_FILES=$(realpath "$files") build_target . wheel; done
[ -z "${SGT_CUDA_FILES:-}" ] || build_target cuda wheel

# Let auditwheel check that each wheel needs no library and no symbol that its tag does not allow.
for wheel in "$build"/wheel/*.whl; do
    tag=${wheel##*-} tag=${tag%.whl}
    PATH=$venv/bin:$PATH "$venv/bin/python" -m auditwheel show "$wheel" > "$log" 2>&1 || { cat "$log" >&2 && exit 1; }
    found=$(tr '\n' ' ' < "$log" | sed -nE 's/.*following platform tag: *"([a-z0-9_]*)".*/\1/p')
    [ "$(printf '%s\n' "$found" "$tag" | sort -V | tail -1)" = "$tag" ] ||
        { cat "$log" >&2 && echo "auditwheel says that the wheel does not fit its tag, $tag" >&2 && exit 1; }
done
ls "$build"/wheel/*
