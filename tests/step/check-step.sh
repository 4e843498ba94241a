#!/bin/sh
# check-step.sh BUILD [all]: the whole training step on the CPU, and the CUDA backend's on the host: in fp32 and bf16, or
# in every precision. The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/../.." || exit 1
B=$1
passed=0 failed=0 skipped=0
log=$(mktemp "${TMPDIR:-/tmp}/sgt-step.XXXXXX")
trap 'rm -f "$log"' EXIT

run() { # COMMAND...
    "$@" > "$log" 2>&1 < /dev/null
    grep -vE '^ok|^[0-9]+ passed, ' "$log"
    sum=$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$log" | tail -1)
    [ -n "$sum" ] || { echo "$*: gave no sum" && sum="0 1 0"; }
    # shellcheck disable=SC2086
    set -- $sum
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

run "$B/bin/check-step" --device cpu
if [ "${2:-}" = all ]; then
    run "$B/host/bin/check-step" --device cuda
else
    run "$B/host/bin/check-step" --device cuda --precision fp32
    run "$B/host/bin/check-step" --device cuda --precision bf16
fi
SGT_HOST_CUDNN=1 run "$B/host/bin/check-step" --device cuda --precision bf16 --case cudnn
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
