#!/bin/sh
# check-step.sh BUILD [check|torture]: the whole training step on the CPU, and the CUDA backend's on the host: in fp32 and bf16
# and over the first steps of the curves; or in every precision and all 200 steps, but of the largest model only 20 on
# the host, and 200 there in fp32: half an hour. The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/../.." || exit 1
B=$1
[ "${2:-}" = torture ] && quiet='' || quiet='|loss off by .* on the mean' # how far curves lie from PyTorch's
passed=0 failed=0 skipped=0
log=$(mktemp "${TMPDIR:-/tmp}/sgt-step.XXXXXX")
trap 'rm -f "$log" "$log".[0-9]*' EXIT

sum_up() { # LOG WHAT
    grep -vE "^ok|^[0-9]+ passed, $quiet" "$1"
    sum=$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$1" | tail -1)
    [ -n "$sum" ] || { echo "$2: gave no sum" && sum="0 1 0"; }
    # shellcheck disable=SC2086
    set -- $sum
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

run() { # COMMAND...
    "$@" > "$log" 2>&1 < /dev/null
    sum_up "$log" "$*"
}

# The host runs a kernel on one thread: two processes share the cases.
run_halves() { # COMMAND...
    for half in 1 2; do "$@" --part $half/2 > "$log.$half" 2>&1 < /dev/null & done
    wait
    for half in 1 2; do sum_up "$log.$half" "$* --part $half/2"; done
}

host=$B/host/bin/check-step
if [ "${2:-}" = torture ]; then
    run "$B/bin/check-step" --device cpu
    run "$host" --device cuda --steps 20
    for curve in curve_odd curve_deep; do run "$host" --device cuda --case $curve; done
    run "$host" --device cuda --case curve --precision fp32
else
    run "$B/bin/check-step" --device cpu --steps 40
    # From make check-all on: bf16 on the host, and each variant, which takes as long as all other cases.
    if [ "${2:-}" = check ]; then
        run_halves "$host" --device cuda --precision fp32 --steps 2 --leave-out variants
    else
        for precision in fp32 bf16; do run_halves "$host" --device cuda --precision $precision --steps 2; done
    fi
fi
SGT_HOST_CUDNN=1 run "$host" --device cuda --precision bf16 --case cudnn
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
