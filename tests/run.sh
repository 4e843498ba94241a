#!/bin/sh
# run.sh BUILD: run the suites, AT_ONCE (2) at a time: those that use Criterion, check-kernels, the
# training step, and the fuzz properties on their seeds. With TIER=all, the default, also CUDA on
# the host and planted bugs (`make check` sets TIER=check). Then run the scripts of tests/cli. The
# last line is "N passed, N failed, N skipped". Exit with 1 if anything failed or nothing ran.
# BUILD/passed gets the names of suites and scripts that passed without a skip; these test the same
# in each tier. Names that match LEFT_OUT, a regular expression, are left out.
set -u
one=''
[ "$1" != --one ] || { one=$2 && shift 2; }
cd "$(dirname "$0")/.." || exit 1
B=$1
TIER=${TIER:-all}
AT_ONCE=${AT_ONCE:-2}
export TIER AT_ONCE

# Without this option, LeakSanitizer may crash ("Tracer caught signal 11") if OpenMP's threads have
# run code of a library that was loaded at run time.
export ASAN_OPTIONS=intercept_tls_get_addr=0

# The programs set this variable for OpenMP (tools/cli/process.h); the suites do not.
export GOMP_SPINCOUNT=1000

# ---- one suite: its output, then a line "sum PASSED FAILED SKIPPED" ----

# Print the counts of a suite. A suite that printed none has crashed, so it counts as one failure.
sum_up() { # EXIT PATTERN SKIPPED: groups 1 and 2 of the sed PATTERN are PASSED and FAILED
    line=$(sed 's/\x1b\[[0-9;]*m//g' "$log" | sed -nE "s/$2/\1 \2 $3/p" | tail -1)
    passed=0 failed=1 skipped=0
    if [ -z "$line" ]; then
        echo "$one gave no sum (exit $1)"
    else
        # shellcheck disable=SC2086
        set -- "$1" $line
        passed=$2 failed=$3 skipped=$4
        case "$*" in # all that ran passed; or nothing could run here (77), which it says; or failures are counted
        0\ * | 77\ 0\ 0\ [1-9]*) ;;
        *) [ "$failed" -gt 0 ] || { echo "$one: exit $1" && failed=1; } ;;
        esac
    fi
    # Criterion counts a test as passed if a sanitizer ended it after its last assertion, so look
    # for the sanitizer's report.
    if grep -qE 'SUMMARY: [A-Za-z]*Sanitizer|runtime error:' "$log"; then
        echo "$one: a sanitizer reported an error"
        failed=$((failed + 1))
    fi
    echo "sum $passed $failed $skipped"
}

if [ -n "$one" ]; then
    log=$(mktemp "${TMPDIR:-/tmp}/sgt-suite.XXXXXX")
    trap 'rm -f "$log"' EXIT
    code=0
    case $one in
    test-*)
        # Criterion's line "Synthesis: Tested: 12 | Passing: 12 | Failing: 0 | Crashing: 0" counts a
        # test that crashed as failing too.
        "$B/tests/$one" --jobs 1 > "$log" 2>&1 < /dev/null || code=$?
        cat "$log"
        sum_up "$code" '.*Tested: [0-9]+ \| Passing: ([0-9]+) \| Failing: ([0-9]+) \| Crashing: [0-9]+.*' 0
        ;;
    *)
        case $one in
        check-cuda) set -- tests/kernels/check-cuda.sh "$B" ;;
        check-cudnn) set -- env LD_LIBRARY_PATH="$B/tests/old" "$B/tests/check-cudnn" ;;
        step-*) set -- tests/step/check-step.sh "$B" all "${one#step-}" ;;
        seeds) set -- tests/fuzz/replay.sh "$B" ;;
        mutants) set -- tests/mutants.sh "$B" ;;
        *) set -- "$B/tests/$one" ;;
        esac
        "$@" > "$log" 2>&1 < /dev/null || code=$?
        grep -avE '^(ok|[0-9]+ passed, )' "$log"
        sum_up "$code" '^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$' '\3'
        ;;
    esac > "$RESULTS/$one" 2>&1
    { echo "== $one" && grep -vE '^sum [0-9 ]+$' "$RESULTS/$one"; } > "$RESULTS/.$one" 2>&1
    # Print the output by a single write: cat may use copy_file_range, which overwrites what another
    # suite prints at the same time.
    printf '%s\n' "$(cat "$RESULTS/.$one")"
    exit 0
fi

# ---- all suites, those that take longest first ----
RESULTS=$(mktemp -d "${TMPDIR:-/tmp}/sgt-check.XXXXXX")
export RESULTS
trap 'rm -rf "$RESULTS"' EXIT
{
    [ "$TIER" = check ] || printf '%s\n' step-host-1 step-host-2 check-cuda step-curves step-cudnn mutants
    printf '%s\n' step-cpu test-train test-tokenize test-loader check-kernels test-base seeds
    [ "$TIER" = check ] || for suite in check-cublaslt check-cudnn; do
        [ ! -x "$B/tests/$suite" ] || echo $suite
    done
} | grep -vxE "${LEFT_OUT:-}" > "$RESULTS/.suites"
xargs -P "$AT_ONCE" -I NAME sh tests/run.sh --one NAME "$B" < "$RESULTS/.suites"
echo "== programs"
COUNTED=1 tests/cli/run.sh "$B/bin" 2>&1 < /dev/null | tee "$RESULTS/.counted" |
    grep -avE --line-buffered '^[0-9]+ passed, '
sed -E 's/^\[[0-9]+\/[0-9]+\] //' "$RESULTS/.counted" > "$RESULTS/.programs"
sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/sum \1 \2 \3/p' "$RESULTS/.programs" > "$RESULTS/programs"
echo programs >> "$RESULTS/.suites"

# Print the failures once more after everything else, because a log may be cut.
failures() { # SUITE
    log=$1
    [ "$1" != programs ] || log=.programs
    sed 's/\x1b\[[0-9;]*m//g' "$RESULTS/$log" 2> /dev/null |
        grep -aE '^(\[(FAIL|----|CRSH)|FAIL|.*: exit [0-9]|.* gave no sum|.*[Ss]anitizer)' | head -20 | sed "s/^/$1: /"
}

passed=0 failed=0 skipped=0
for suite in $(cat "$RESULTS/.suites"); do
    sum=$(sed -n 's/^sum //p' "$RESULTS/$suite" 2> /dev/null | tail -1)
    [ -n "$sum" ] || { echo "$suite gave no sum" >&2 && sum="0 1 0"; }
    # shellcheck disable=SC2086
    set -- $sum
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    [ "$2" -eq 0 ] || failures "$suite" >> "$RESULTS/.failures"
    case $suite,$2,$3 in programs,*) ;; *,0,0) echo "$suite" ;; esac
done > "$B/passed"
sed -n 's/^ok    //p' "$RESULTS/.programs" >> "$B/passed"
[ ! -s "$RESULTS/.failures" ] || { echo && echo "== failed" && cat "$RESULTS/.failures"; }
echo
echo "== all"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
