#!/bin/sh
# machine-code.sh BUILD [accept]: compare the code that nvcc generates for the kernels of GPT-2's
# training step on sm_90a with the table tests/kernels/machine-code.txt. `accept` writes the table
# anew. No GPU is needed: NVIDIA's disassemblers are wheels of PyPI, fetched once into
# BUILD/machine-code. Exit 77, with one line, if that is impossible.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=$1
accept=${2:-}
at=$B/machine-code
release=13.2.78
kept=tests/kernels/machine-code.txt

skip() {
    echo "machine code: left out: $1"
    exit 77
}
command -v python3 > /dev/null || skip 'no python3'
command -v c++filt > /dev/null || skip 'no c++filt (package binutils)'
mkdir -p "$at" || exit 1

fetch() {
    timeout 120 python3 -m pip download -q --disable-pip-version-check --no-deps -d "$at/wheels" \
        nvidia-cuda-cuobjdump==$release nvidia-cuda-nvdisasm==$release > "$at/pip.log" 2>&1 &&
        for wheel in "$at"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$at" || return 1; done
}
bin=$at/nvidia/cu13/bin
[ -x "$bin/nvdisasm" ] || fetch || skip "the disassemblers cannot be fetched ($(tail -1 "$at/pip.log" 2> /dev/null))"
chmod +x "$bin/cuobjdump" "$bin/nvdisasm" || exit 1

# ---- the launches of the plans in the table: both attentions, dropout, and each variant ----
rm -f "$at"/*.list
plan='--model gpt2 --seq-len 1024 --precision bf16'
list() { # NAME OPTION...
    name=$1
    shift
    # shellcheck disable=SC2086
    tests/kernels/launches.sh "$B" "$at/$name.list" $plan "$@" || exit 1
}
list cudnn --batch-size 64 --attention cudnn
list own --batch-size 64 --attention own
list small --batch-size 12 --attention own
list dropout --batch-size 64 --attention own --dropout 0.1
list muon --batch-size 64 --attention cudnn --optimizer muon
list hopper --batch-size 64 --attention own --variant attention-hopper
for variant in $(tests/kernels/variants.sh "$B"); do
    list "variant-$variant" --batch-size 64 --attention cudnn --variant "$variant"
done

# ---- the code of those kernels ----
rm -rf "$at/code" && mkdir "$at/code" || exit 1
(cd "$at/code" && ../nvidia/cu13/bin/cuobjdump -xelf all -arch sm_90a ../../lib/libsgt-cuda.so) \
    > "$at/cuobjdump.log" 2>&1 ||
    { echo "FAIL machine code: cuobjdump: $(tail -1 "$at/cuobjdump.log")"; exit 1; }
sed -n 's/^kernel \([a-z0-9_]*\).*/\1/p' "$at"/*.list | sort -u > "$at/expected"
set --
for cubin in "$at"/code/*.cubin; do
    "$bin/cuobjdump" -res-usage "$cubin" > "$cubin.sass.res" 2> /dev/null || exit 1
    grep -qFf "$at/expected" "$cubin.sass.res" || continue
    "$bin/nvdisasm" -c "$cubin" > "$cubin.sass" || exit 1
    set -- "$@" "$cubin.sass"
done
PYTHONDONTWRITEBYTECODE=1 python3 tests/kernels/machine_code.py "$@" -- "$at"/*.list > "$at/table" || exit 1
if [ "$accept" = accept ]; then
    cp "$at/table" $kept && echo "wrote $kept"
    exit
fi
PYTHONDONTWRITEBYTECODE=1 python3 tests/kernels/machine_code.py --compare $kept "$at/table"
