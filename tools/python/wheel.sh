#!/bin/sh
# wheel.sh BUILD [CUDA]: make the wheel and the sdist in BUILD/wheel from BUILD/wheel-files, and the wheel sgtokens-cuda from
# the folder CUDA, if it is given. What is missing is said in one line, with exit code 1.
set -eu
cd "$(dirname "$0")/../.."
build=$(cd "$1" && pwd)
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

# build_target FOLDER TARGET: let hatchling make a wheel or an sdist.
build_target() {
    (cd "tools/python/$1" && "$venv/bin/python" -m hatchling build --target "$2" --directory "$build/wheel") \
        > "$log" 2>&1 ||
        { tail -20 "$log" >&2 && exit 1; }
}

rm -rf "$build/wheel"
mkdir -p "$build/wheel"
export SOURCE_DATE_EPOCH=1577836800 "SGT_WHEEL_FILES=$build/wheel-files"
[ $# -eq 1 ] || export "SGT_CUDA_FILES=$(realpath "$2")"
build_target . wheel
build_target . sdist
[ $# -eq 1 ] || build_target cuda wheel

# auditwheel must find no library that the tag does not allow.
for wheel in "$build"/wheel/*.whl; do
    tag=$(echo "$wheel" | sed 's/.*-\(manylinux_[0-9_]*x86_64\).*/\1/')
    PATH=$venv/bin:$PATH "$venv/bin/python" -m auditwheel show "$wheel" > "$log" 2>&1 || { cat "$log" >&2 && exit 1; }
    tr '\n' ' ' < "$log" | grep -q "consistent with the following platform tag: *\"$tag\"" ||
        { cat "$log" >&2 && echo "auditwheel does not agree with the tag $tag" >&2 && exit 1; }
done
ls "$build"/wheel/*
