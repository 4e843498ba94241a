#!/bin/sh
# measure_moments.sh BIN TEXT DIR [STEPS]: compare training with AdamW's moments in float32 and in
# bfloat16 (--optimizer-state). BIN: a folder with sgt-tokenize and sgt-train. TEXT: a folder of
# text files, such as the Jargon File that `make demo` leaves in build/demo/corpus/text. DIR: folder
# for all output. Both runs read the same rows. Means of 50 losses are compared: the last and the
# largest difference are printed. The same is printed for a float32 run at another CPU level,
# because two runs that round differently drift apart by chance.
set -eu
PATH=$(cd "$1" && pwd):$PATH
text=$(cd "$2" && pwd)
steps=${4:-2000}
mkdir -p "$3"
cd "$3"
[ -d v8k ] || sgt-tokenize --quiet --train-vocab 8192 "$text" v8k
[ -d data ] || sgt-tokenize --quiet --vocab v8k --split none "$text" data
run() { # NAME OPTION...
    name=$1
    shift
    sgt-train --quiet --device cpu --precision fp32 --force --data data --run "$name" --model 4x128x4 --batch-size 16 \
        --seq-len 64 --steps "$steps" --lr 1e-3 --save-every 0 --eval-every 0 "$@"
    sed 's/.*"loss":\([^,]*\).*/\1/' "$name/log.jsonl" > "$name.losses"
}
run fp32
run bf16 --optimizer-state bf16
run other --cpu avx2 # the same arithmetic, rounded differently: shows how far chance alone separates two runs
for name in bf16 other; do
    paste fp32.losses "$name.losses" | awk -v name="$name" '
        { sum += $2 - $1; n++; of += $1 }
        n == 50 {
            d = sum / n
            size = d < 0 ? -d : d
            if (size > worst) worst = size
            last = d; loss = of / n; sum = n = of = 0
        }
        END { printf "%s: last 50 of %d steps %.4f %+.4f, largest difference of 50 %.4f\n", name, NR, loss, last, worst }'
done
