#!/bin/sh
# replay.sh BUILD [TARGET]...: check every property, or these, with every seed, at each CPU level up to this machine's.
set -u
cd "$(dirname "$0")/../.." || exit 1
passed=0 failed=0
log=$(mktemp "${TMPDIR:-/tmp}/sgt-replay.XXXXXX")
trap 'rm -f "$log"' EXIT
program=$1/tests/replay
shift
targets=${*:-$(sed -n 's/^    {"\([a-z]*\)", fuzz_.*/\1/p' tests/fuzz/fuzz.c)}
for target in $targets; do
    for level in auto avx2 plain; do
        FUZZ_TARGET=$target FUZZ_CPU=$level "$program" tests/fuzz/seeds/* > "$log" 2>&1
        code=$?
        sum=$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, 0 skipped$/\1 \2/p' "$log")
        if [ $code = 0 ] && [ -n "$sum" ]; then
            passed=$((passed + ${sum% *}))
        else
            echo "FAIL  $target at $level"
            grep -v '^ok ' "$log"
            failed=$((failed + 1))
        fi
    done
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ] && [ $passed -gt 0 ]
