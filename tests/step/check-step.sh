#!/bin/sh
# check-step.sh BUILD [all|torture] [PART]: compare the whole training step with PyTorch's numbers, on the CPU backend
# and on the CUDA backend in emulation on the CPU ("host").
#   all (default): the first steps of the curves.
#   torture: every precision, over all 200 steps, in half an hour. On the host, the largest model
#     has 20 steps, and 200 in fp32.
# PART: cpu; curves (more steps on the CPU); host-1 or host-2 (half of the host's cases each, in fp32 and bf16); cudnn;
# default: all of them. The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/../.." || exit 1
B=$1
tier=${2:-all}
part=${3:-}
# Except for torture, hide how far the curves lie from PyTorch's.
[ "$tier" = torture ] && quiet='' || quiet='|loss off by .* on the mean'
passed=0 failed=0 skipped=0
log=$(mktemp "${TMPDIR:-/tmp}/sgt-step.XXXXXX")
trap 'rm -f "$log"' EXIT

run() { # COMMAND...
    "$@" > "$log" 2>&1 < /dev/null
    grep -vE "^ok|^[0-9]+ passed, $quiet" "$log"
    sum=$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$log" | tail -1)
    [ -n "$sum" ] || { echo "$*: gave no sum" && sum="0 1 0"; }
    # shellcheck disable=SC2086
    set -- $sum
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}
expected() { [ -z "$part" ] || [ "$part" = "$1" ]; }

host=$B/host/tests/check-step
if [ "$tier" = torture ]; then
    run "$B/tests/check-step" --device cpu
    run "$host" --device cuda --steps 20
    for curve in curve_odd curve_deep; do run "$host" --device cuda --case $curve; done
    run "$host" --device cuda --case curve --precision fp32
else
    ! expected cpu || run "$B/tests/check-step" --device cpu --steps 12
    ! expected curves || for curve in curve curve_odd curve_deep; do
        run "$B/tests/check-step" --device cpu --steps 40 --case $curve
    done
    for half in 1 2; do
        for precision in fp32 bf16; do
            ! expected host-$half || run "$host" --device cuda --precision $precision --steps 2 --part $half/2
        done
    done
fi
! expected cudnn || SGT_HOST_CUDNN=1 run "$host" --device cuda --precision bf16 --case cudnn
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
