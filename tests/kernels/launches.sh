#!/bin/sh
# launches.sh BUILD FILE [OPTION]...: write to FILE what one training step puts on its stream. The
# CUDA backend itself decides it, in the host build's list mode (tests/kernels/host/list.h). Nothing
# is run, so any batch size takes a second. OPTIONs go to sgt-bench step. Kernels get their names,
# and only one step is kept.
set -u
B=$1
to=$2
shift 2
lib=$B/host/lib/libsgt-cuda.so
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT INT TERM

# Turn off the self-check of kernels, if the program has one: it would find that nothing was
# computed.
unchecked=
! "$B/host/bin/sgt-bench" step --help | grep -q -e --no-self-check || unchecked=--no-self-check

# cuDNN's engines clear dQ's sums themselves, as NVIDIA's frontend assumes from 9.6 on (SGT_HOST_CUDNN=adds, or
# without the variant dq-uncleared: we do).
# The device has an H100's memory. Without a graph, what is launched once is listed once. The cache
# holds timings.
if ! SGT_HOST_LIST=$scratch/list SGT_HOST_DEVICE=memory=80000M SGT_HOST_CUDNN="${SGT_HOST_CUDNN:-1}" \
    XDG_CACHE_HOME=$scratch "$B/host/bin/sgt-bench" step --device cuda --threads 1 --warmup 0 --steps 1 --no-graphs \
    --quiet $unchecked "$@" > "$scratch/out" 2>&1; then
    cat "$scratch/out" >&2
    exit 1
fi

# "000000000006cfe0 t void norm_kernel<dev::bf16, 8>(NormRows<dev::bf16>)" gives "+6cfe0 norm_kernel<bf16,8>".
nm -C "$lib" | sed -n 's/^0*\([0-9a-f]*\) [tT] \(.*_kernel.*\)$/+\1 \2/p' |
    tests/kernels/kernel-name.sh > "$scratch/names"

# Keep the last step: the lines after the end of the step before it. Earlier work belongs to set-up.
awk 'NR == FNR { name[$1] = $2; next }
     $1 == "kernel" { $2 = ($2 in name) ? name[$2] : "unknown" }
     { line[++n] = $0 }
     $1 == "kernel" && $2 == "end_step_kernel" { before = last; last = n }
     END {
         if (!before) { print "launches.sh: no whole step in the list" > "/dev/stderr"; exit 1 }
         for (i = before + 1; i <= last; i++) print line[i]
     }' "$scratch/names" "$scratch/list" > "$to"
