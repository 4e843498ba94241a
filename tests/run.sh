#!/bin/sh
# run.sh BUILD: every suite that BUILD holds, in turn: Criterion's, check-kernels, the programs. $TIER says how much of
# each: check (make check) or all (the default). The last line sums them up as "N passed, N failed, N skipped". Exit 1
# when anything failed or nothing ran.
set -u
cd "$(dirname "$0")/.." || exit 1
B=$1
TIER=${TIER:-all}
export TIER
passed=0 failed=0 skipped=0
log=$(mktemp "${TMPDIR:-/tmp}/sgt-check.XXXXXX")
trap 'rm -f "$log" "$log.kernels"' EXIT

# Without this, LeakSanitizer crashes ("Tracer caught signal 11") once oneDNN, loaded at run time, ran on OpenMP's
# threads.
export ASAN_OPTIONS=intercept_tls_get_addr=0

# OpenMP of suites: as the programs set it themselves (tools/cli/spin.h).
export GOMP_SPINCOUNT=1000

count() { # PASSED FAILED SKIPPED
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# Criterion passes a test whose process a sanitizer ended with a report after its last assertion: look for the report
# itself.
reports() { # NAME
    grep -qE 'SUMMARY: [A-Za-z]*Sanitizer|runtime error:' "$log" || return 0
    echo "$1: a sanitizer had something to report"
    count 0 1 0
}

# The suite's own sum, or one failure where it gave none: a suite that died is not a suite that passed.
sum_up() { # NAME EXIT PATTERN [SKIPPED]: the pattern's groups are passed and failed; skipped where given as \3
    line=$(sed 's/\x1b\[[0-9;]*m//g' "$log" | sed -nE "s/$3/\1 \2 ${4:-0}/p" | tail -1)
    if [ -z "$line" ]; then
        echo "$1 gave no sum (exit $2)"
        count 0 1 0
    else
        count $line
        set -- "$1" "$2" $line
        case "$2 $3 $4 $5" in # what ran passed; 77: what it needs is not here, and it says so; or failures are counted
        0\ * | 77\ 0\ 0\ [1-9]*) ;;
        *) [ "$4" -gt 0 ] || { echo "$1: exit $2"; count 0 1 0; } ;;
        esac
    fi
}

for suite in "$B"/tests/test-*; do
    [ -x "$suite" ] || continue
    echo "== $(basename "$suite")"
    code=0
    "$suite" --jobs 2 > "$log" 2>&1 < /dev/null || code=$?
    # "Synthesis: Tested: 12 | Passing: 12 | Failing: 0 | Crashing: 0": a crashing test is among the failing ones.
    cat "$log"
    sum_up "$(basename "$suite")" "$code" \
        '.*Tested: [0-9]+ \| Passing: ([0-9]+) \| Failing: ([0-9]+) \| Crashing: [0-9]+.*'
    reports "$(basename "$suite")"
done
ended() { # NAME EXIT: a program that ends with its own sum; $log is what it said
    echo "== $1"
    grep -vE '^(ok|[0-9]+ passed, )' "$log"
    sum_up "$1" "$2" '^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$' '\3'
    reports "$1"
}
program() { # NAME COMMAND...
    name=$1 code=0
    shift
    [ -x "$1" ] || return 0
    "$@" > "$log" 2>&1 < /dev/null || code=$?
    ended "$name" "$code"
}
# These two run on one core each, so they run at the same time.
"$B/tests/check-kernels" > "$log.kernels" 2>&1 < /dev/null &
kernels=$!
[ ! -x "$B/tests/check-cuda" ] || program "CUDA kernels on the host" tests/kernels/check-cuda.sh "$B" "$TIER"
code=0
wait "$kernels" || code=$?
mv "$log.kernels" "$log"
ended check-kernels "$code"
program "descriptors of cuBLASLt" "$B/tests/check-cublaslt"
[ ! -x "$B/tests/check-cudnn" ] || program "attention by cuDNN" tests/kernels/check-cudnn.sh "$B"
[ ! -x "$B/bin/check-step" ] || program "the training step" tests/step/check-step.sh "$B" "$TIER"
program "seeds of fuzzing" tests/fuzz/replay.sh "$B"
program programs tests/cli/run.sh "$B/bin"

echo
echo "== all"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
