#!/bin/sh
# measure_moments.sh BIN TEXT DIR [STEPS]: compare training with AdamW's moments in float32 and in bfloat16
# (--optimizer-state). BIN: a folder with sgt-tokenize and sgt-train; TEXT: a folder of text files, such as the Jargon
# File that `make demo` leaves in build/demo/corpus/text; DIR: where everything goes. Both runs read the same rows.
# It prints the last difference of the means of 50 losses, and the largest.
set -eu
PATH=$(cd "$1" && pwd):$PATH
text=$(cd "$2" && pwd)
steps=${4:-2000}
mkdir -p "$3"
cd "$3"
[ -d v8k ] || sgt-tokenize --quiet --train-vocab 8192 "$text" v8k
[ -d data ] || sgt-tokenize --quiet --vocab v8k --split none "$text" data
for state in fp32 bf16; do
    sgt-train --quiet --device cpu --force --data data --run "$state" --model 4x128x4 --batch-size 8 --seq-len 64 \
        --steps "$steps" --lr 3e-3 --optimizer-state "$state" --save-every 0 --eval-every 0
    sed 's/.*"loss":\([^,]*\).*/\1/' "$state/log.jsonl" > "$state.losses"
done
paste fp32.losses bf16.losses | awk '
    { sum += $2 - $1; n++; of += $1 }
    n == 50 { d = sum / n; if ((d < 0 ? -d : d) > worst) worst = (d < 0 ? -d : d); last = d; loss = of / n; sum = n = of = 0 }
    END { printf "%d steps, last 50 in float32: %.4f; bf16 minus float32: last %+.4f, largest %.4f\n", NR, loss, last, worst }'
