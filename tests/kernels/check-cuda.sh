#!/bin/sh
# check-cuda.sh BUILD [all|torture]: test the CUDA kernels on the host. all (the default): under one schedule, in race
# mode, and the next three of the planted bugs. torture: under four schedules more, and every planted bug. The last line
# is "N passed, N failed, N skipped".
set -u
LC_ALL=C # the order of sort
export LC_ALL
cd "$(dirname "$0")/../.." || exit 1
B=$1
tier=${2:-all}
log=$(mktemp "${TMPDIR:-/tmp}/sgt-cuda.XXXXXX")
trap 'rm -f "$log"' EXIT
passed=0 failed=0

# Add up the numbers that a program passed and failed. Count one failure if it prints none.
run() { # COMMAND...
    "$@" > "$log" 2>&1 < /dev/null
    grep -vE '^ok|^[0-9]+ passed, ' "$log"
    sum=$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, 0 skipped$/\1 \2/p' "$log" | tail -1)
    [ -n "$sum" ] || { echo "$*: gave no sum" && sum="0 1"; }
    # shellcheck disable=SC2086
    set -- $sum
    passed=$((passed + $1)) failed=$((failed + $2))
}

# Kernels must be plain C++, except for what device.cuh and hopper.cuh wrap. The host run would not
# check anything else.
plain='__global__|__launch_bounds__|__restrict__|__grid_constant__'
raw='\<(asm|nvcuda|atomic[A-Z][A-Za-z]*|cudaLaunch[A-Za-z]*)\>|<<<|>>>|cuda::|\<__[A-Za-z0-9_]+'
unwrapped() { # FILE: its lines with anything else
    sed -E "s|//.*||; s/$plain//g" "$1" | grep -nE "$raw" | sed "s|^|$1:|"
}
found=$(for f in kernels/cuda/*.cu kernels/cuda/*.cuh; do
    case $f in */device.cuh | */hopper.cuh) continue ;; esac
    [ ! -f "$f" ] || unwrapped "$f"
done)
if [ -z "$found" ]; then
    passed=$((passed + 1))
else
    echo "kernels use what device.cuh should wrap:"
    echo "$found"
    failed=$((failed + 1))
fi

# If two files define a template or a struct of the same name, the linker silently keeps one of
# them.
names() { # FILE...: each file's own, once
    for f; do
        sed -E -n '/^template <.*>$/ { N; s/\n/ /; }
            s/ __launch_bounds__\([^)]*\)//
            s/^(template <[^(]*> )?struct ([A-Za-z_]+).*/\2/p
            s/^template <.*> constexpr [a-z_]+ ([A-Za-z_]+).*/\1/p
            s/^template <[^(]*[ *&]([A-Za-z_]+)\(.*/\1/p' "$f" | sort -u
    done | sort | uniq -d
}
found=$(names kernels/cuda/*.cu)
if [ -z "$found" ]; then
    passed=$((passed + 1))
else
    echo "of one name in two of kernels/cuda/*.cu:" $found
    failed=$((failed + 1))
fi

# The compiled host run has no kernels that start before the previous one ends (early-launch).
found=$(awk '/^[^/ ].*__global__|^__global__/ { kernel = FNR; n++ }
    kernel && /^\{/ { kernel = 0; getline; if ($0 != "    dev::after_previous();") print FILENAME ":" FNR }
    END { if (!n) print "no kernel" }' kernels/cuda/attention*.cuh kernels/cuda/*.cu)
if [ -z "$found" ]; then
    passed=$((passed + 1))
else
    echo "kernels that do not begin with dev::after_previous():" $found
    failed=$((failed + 1))
fi

schedules=0
[ "$tier" != torture ] || schedules="0 1 2 3"
for schedule in $schedules; do run env SGT_HOST_DEVICE="schedule=$schedule" "$B/tests/check-cuda"; done
if [ -x "$B/tests/check-cuda-race" ]; then
    run "$B/tests/check-cuda-race"
    [ "$tier" = torture ] && bugs=all || bugs=3
    run tests/kernels/mutants/run.sh "$B" $bugs
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
