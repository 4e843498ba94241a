#!/bin/sh
# run.sh BUILD SECONDS TARGET...: libFuzzer on each for so long, from the seeds and what earlier runs have found
# (BUILD/found), at this machine's best level, AVX2 and plain C in turn. What breaks a property is kept in BUILD, and named.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$1 seconds=$2
shift 2
mkdir -p "$build/found"
for target in "$@"; do
    for level in auto avx2 plain; do
        log=$build/fuzz-$target-$level.log
        FUZZ_CPU=$level "$build/bin/fuzz-$target" -max_total_time=$(((seconds + 2) / 3)) -max_len=4096 -timeout=20 \
            -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$build/$target-" "$build/found" tests/fuzz/seeds/* \
            > "$log" 2>&1 || {
            grep -E 'it does not hold|ERROR|SUMMARY|Test unit written' "$log" >&2
            echo "fuzz: $target breaks (whole report: $log)" >&2
            exit 1
        }
        echo "fuzz: $target at $level: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") texts in" \
            "$(((seconds + 2) / 3)) s, none breaks it"
    done
done
