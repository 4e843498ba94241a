#!/bin/sh
# check-cudnn.sh BUILD: test, without a GPU, that cuDNN's heuristics accept our graphs, and that an old
# cuDNN is refused. The last line is "N passed, N failed, N skipped". Without cuDNN its part is skipped.
set -u
B=$1
log=$(mktemp "${TMPDIR:-/tmp}/sgt-cudnn.XXXXXX")
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0

run() { # COMMAND...
    "$@" > "$log" 2>&1 < /dev/null
    cat "$log"
    sum=$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$log" | tail -1)
    [ -n "$sum" ] || { echo "$*: gave no sum" && sum="0 1 0"; }
    # shellcheck disable=SC2086
    set -- $sum
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

run env LD_LIBRARY_PATH="$B/tests/old" "$B/tests/check-cudnn" --old
# The toolkit has a stub of the driver. cuDNN's heuristics need no more.
nvcc=$(command -v nvcc) && toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
# cuDNN leaks memory whenever it loads and unloads one of its parts. Do not report its leaks.
run env ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" "$B/tests/check-cudnn" \
    --driver "${toolkit:-/usr/local/cuda}/lib64/stubs/libcuda.so"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
