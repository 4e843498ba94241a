#!/bin/sh
# check-step.sh BUILD [check|all|torture] [PART]: compare the whole training step with PyTorch's
# numbers, on the CPU backend ("cpu") and on the CUDA backend in emulation on the CPU ("host").
#   check: the host in fp32; only the first steps of the curves.
#   all (default): the host in bf16 too, with every mix of recomputation and each variant.
#   torture: every precision, over all 200 steps, in half an hour. On the host, the largest model
#     has 20 steps, and 200 in fp32.
# PART: cpu, host-1 or host-2 (half of the host's cases each), or cudnn; default: all of them. The
# last line is "N passed, N failed, N skipped".
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

host=$B/host/bin/check-step
# make check leaves these out: they take as long as all other cases, and tests/train has them on the
# CPU.
long=variants,recompute_mix,live,muon_on_cuda
case $tier in
torture)
    run "$B/bin/check-step" --device cpu
    run "$host" --device cuda --steps 20
    for curve in curve_odd curve_deep; do run "$host" --device cuda --case $curve; done
    run "$host" --device cuda --case curve --precision fp32
    ;;
check)
    ! expected cpu || run "$B/bin/check-step" --device cpu --steps 12
    for half in 1 2; do
        ! expected host-$half ||
            run "$host" --device cuda --precision fp32 --steps 2 --part $half/2 --leave-out $long
    done
    ;;
*)
    ! expected cpu || run "$B/bin/check-step" --device cpu --steps 40
    for half in 1 2; do
        for precision in fp32 bf16; do
            ! expected host-$half || run "$host" --device cuda --precision $precision --steps 2 --part $half/2
        done
    done
    ;;
esac
! expected cudnn || SGT_HOST_CUDNN=1 run "$host" --device cuda --precision bf16 --case cudnn
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
