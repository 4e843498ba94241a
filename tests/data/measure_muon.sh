#!/bin/sh
# measure_muon.sh BIN TEXT DIR [STEPS [MODEL]]: how many steps Muon needs to reach AdamW's loss (--optimizer).
# BIN: a folder with sgt-tokenize and sgt-train; TEXT: a folder of text files, such as the Jargon File that `make demo`
# leaves in build/demo/corpus/text; DIR: where everything goes. Runs that are there already are not made again.
# HOW: other options of sgt-train than --precision fp32 --threads 1 --batch-size 16 --seq-len 64.
#
# First it searches the learning rate of each optimizer, for runs of STEPS steps (400): a factor of two apart, until the
# best has a worse one on either side. Then Muon trains at its best rate for fewer steps, with a whole schedule each.
# Losses are of the validation shards after the last step. It prints a line a run, and at last how much more CPU
# time a step takes, whose wall time depends on what else runs.
set -eu
PATH=$(cd "$1" && pwd):$PATH
text=$(cd "$2" && pwd)
steps=${4:-400} model=${5:-4x96x4} how=${HOW:---precision fp32 --threads 1 --batch-size 16 --seq-len 64}
mkdir -p "$3/logs"
cd "$3"
[ -d v2k ] || sgt-tokenize --quiet --train-vocab 2048 "$text" v2k
[ -d data ] || sgt-tokenize --quiet --vocab v2k --split 10% "$text" data

train() { # OPTIMIZER RATE STEPS
    # shellcheck disable=SC2086
    sgt-train --quiet --device cpu $how --force --data data --run run --model "$model" --steps "$3" \
        --optimizer "$1" --lr "$2" --save-every 0 --eval-every "$3" 2> warnings
}
loss() { # OPTIMIZER RATE STEPS
    log=logs/$model-$1-$2-$3.jsonl
    [ -e "$log" ] || { train "$@" && mv run/log.jsonl "$log"; }
    value=$(sed -n 's/.*"val_loss":\([^,}]*\).*/\1/p' "$log" | tail -1)
    printf '%s %s, %s steps: %.4f\n' "$1" "$2" "$3" "$value" >&2
    echo "$value"
}
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }
product() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%g", a * b }'; }

# Set `rate` and `least` to the best rate of an optimizer and its loss: from a first rate on, upwards while that gains,
# or else downwards.
search() { # OPTIMIZER RATE
    rate=$2 least=$(loss "$1" "$2" "$steps")
    for factor in 2 .5; do
        while
            next=$(product "$rate" $factor)
            value=$(loss "$1" "$next" "$steps")
            less "$value" "$least"
        do rate=$next least=$value; done
    done
}
# Seconds of CPU time that a run takes. `times` prints those of the shell, then those of its children.
cpu() { # OPTIMIZER STEPS
    (train "$1" 0.001 "$2" > said && times) | awk 'END { split($1, part, /[ms]/); print part[1] * 60 + part[2] }'
}

search adamw 0.002
target=$least
echo "AdamW: $least at $rate"
search muon 0.002
echo "Muon: $least at $rate"
for percent in 90 80 70 60 50 40 30 20; do
    n=$((steps * percent / 100))
    value=$(loss muon "$rate" $n)
    reached=$(less "$target" "$value" || echo ", no more than AdamW after $steps steps")
    echo "Muon after $n steps ($percent %): $value$reached"
    [ "$reached" ] || break
done
for _ in 1 2 3 4 5; do
    echo "$(cpu adamw 1) $(cpu adamw 21) $(cpu muon 1) $(cpu muon 21)"
done | awk '{ print ($4 - $3) / ($2 - $1) }' | sort -g | awk -v model="$model" '{ v[NR] = $1 }
    END { printf "a step of %s takes %.2f times the CPU time with Muon (%.2f to %.2f)\n", model, v[3], v[1], v[5] }'
