#!/bin/sh
# mutants.sh BUILD: plant the bugs of the table tests/mutants, one at a time, in a copy of the
# source, and expect the named test to fail. The bug must change exactly one line, and the test must
# pass without it. If the code that a pattern of the table matches moves, edit the pattern. Never
# drop a bug because its test no longer finds it. The last line is "N passed, N failed, 0 skipped".
set -u
cd "$(dirname "$0")/.." || exit 1
B=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/sgt-mutants.XXXXXX")
trap 'rm -rf "$work"' EXIT
compile="$(sed 's/-MMD -MP//' "$B/flags") -O1 -w -fopenmp"
passed=0 failed=0

# Print how many of the tests that match TEST fail; print nothing if the suite printed no counts or
# no test matches.
count_failing() { # SUITE TEST
    timeout 60 "$1" --jobs 1 --filter "$2" > "$work/log" 2>&1 < /dev/null
    sed 's/\x1b\[[0-9;]*m//g' "$work/log" |
        sed -nE 's/.*Tested: [1-9][0-9]* \| Passing: [0-9]+ \| Failing: ([0-9]+).*/\1/p'
}

# Succeed if the test finds the bug. Otherwise, $why gives the reason.
is_found() { # SOURCE TEST SED
    suite=$B/tests/test-${1%%/*}
    sed "$3" "$1" > "$work/planted.c"
    why="does not change exactly one line of $1"
    [ "$(diff "$1" "$work/planted.c" | grep -c '^[<>]')" = 2 ] || return
    why="$2 does not pass without it"
    [ "$(count_failing "$suite" "$2")" = 0 ] || return
    why="does not compile"
    # shellcheck disable=SC2086
    $compile -c -o "$work/planted.o" "$work/planted.c" > "$work/log" 2>&1 || return
    # The planted object defines the symbols, so the linker does not use the library's object for
    # them.
    sh "$suite.link" -o "$work/suite" "$work/planted.o" > "$work/log" 2>&1 || return
    why="$2 does not find it"
    [ "$(count_failing "$work/suite" "$2")" -gt 0 ] 2> /dev/null
}

grep -v '^#' tests/mutants > "$work/table"
while read -r source test change; do
    if is_found "$source" "$test" "$change"; then
        echo "ok   $source $change: $test finds it"
        passed=$((passed + 1))
    else
        echo "FAIL $source $change: $why"
        tail -3 "$work/log"
        failed=$((failed + 1))
    fi
done < "$work/table"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
