#!/bin/sh
# run.sh BUILD SECONDS TARGET...: run libFuzzer on each target for SECONDS, from the seeds and from
# inputs that earlier runs found (BUILD/found/TARGET). Targets that depend on the CPU level run at
# this machine's best, AVX2 and plain C in turn. The memory of the process and of one allocation is
# limited. Inputs that break a property are kept in BUILD, and their names are printed.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$1 seconds=$2
shift 2
TMPDIR=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/sgt-fuzz.XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 1' INT TERM
for target in "$@"; do
    levels=auto
    ! grep -q "fuzz_$target, LEVELS" tests/fuzz/fuzz.c || levels='auto avx2 plain'
    each=$((seconds / $(echo "$levels" | wc -w)))
    mkdir -p "$build/found/$target"
    for level in $levels; do
        log=$build/fuzz-$target-$level.log
        FUZZ_TARGET=$target FUZZ_CPU=$level "$build/tests/fuzz" -max_total_time=$((each + (each == 0))) -max_len=4096 -timeout=20 \
            -rss_limit_mb=2048 -malloc_limit_mb=512 -print_final_stats=1 -artifact_prefix="$build/$target-" \
            "$build/found/$target" tests/fuzz/seeds/* > "$log" 2>&1 || {
            grep -E 'it does not hold|ERROR|SUMMARY|Test unit written' "$log" >&2
            echo "fuzz: $target breaks (whole report: $log)" >&2
            exit 1
        }
        echo "fuzz: $target at $level: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $each s," \
            "none breaks it"
    done
done
