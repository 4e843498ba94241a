#!/bin/sh
# measure_lr.sh BIN TEXT DIR [curves]: measure which learning rates suit which models and batches,
# for --lr auto and for the tests of advice. BIN: a folder with sgt-tokenize and sgt-train. TEXT: a
# folder of text files, such as the Jargon File that `make demo` leaves in build/demo/corpus/text.
# DIR: folder for all output.
#
# DIR/table has a line for each run: vocabulary, model, rows per step, tokens per row, steps, rate,
# and mean loss of the last 20 steps. Runs that are complete are not repeated. Schedule and warm-up
# are sgt-train's defaults. All runs of a group read the same rows. DIR/curves.txt has the losses of
# the groups that tests/train/test_advice.c reads. All runs together take about an hour of one core;
# with "curves" as the last argument, only the curves are made.
set -eu
PATH=$(cd "$1" && pwd):$PATH
text=$(cd "$2" && pwd)
what=${4:-all}
mkdir -p "$3/logs"
cd "$3"
[ -d v8k ] || sgt-tokenize --quiet --train-vocab 8192 "$text" v8k
[ -d 8k ] || sgt-tokenize --quiet --vocab v8k "$text" 8k
[ -d gpt2 ] || sgt-tokenize --quiet "$text" gpt2

# group VOCABULARY MODEL ROWS TOKENS STEPS RATE...: train once with each rate, and append the
# results to table.new
group() {
    of="$1 $2 $3 $4 $5"
    vocabulary=$1 model=$2 rows=$3 tokens=$4 steps=$5
    shift 5
    for rate; do
        log=logs/$(echo "$of $rate" | tr ' ' -).jsonl
        [ -e "$log" ] || {
            sgt-train --quiet --device cpu --precision fp32 --threads 1 --force --data "$vocabulary" --run run \
                --model "$model" --batch-size "$rows" --seq-len "$tokens" --steps "$steps" --lr "$rate" \
                --save-every 0 --eval-every 0 2> warnings
            mv run/log.jsonl "$log"
        }
        mean=$(sed 's/.*"loss":\([^,]*\).*/\1/' "$log" | tail -20 | awk '{ sum += $1 } END { printf "%.3f", sum / NR }')
        echo "$of $rate $mean" | tee -a table.new
    done
}
# curves VOCABULARY MODEL ROWS TOKENS STEPS RATE...: do the same, and append the losses to
# curves.new
curves() {
    group "$@"
    of="$1 $2 $3 $4 $5"
    shift 5
    for rate; do
        echo "$of $rate"
        sed 's/.*"loss":\([^,]*\).*/\1/' "logs/$(echo "$of $rate" | tr ' ' -).jsonl" |
            awk '{ printf (NR > 1 ? " %.4g" : "%.4g"), $1 } END { print "" }'
    done >> curves.new
}

rm -f table.new curves.new
curves 8k 2x64x2 16 64 200 1e-4 1e-3 3e-3 1e-2 3e-2 1e-1 1 20
curves gpt2 4x128x4 4 64 150 1e-4 1e-3 3e-3 1e-2 3e-2 1e-1 1 20
curves 8k 6x256x8 4 64 120 1e-4 1e-3 3e-3 1e-2 3e-2 1e-1 1 20
mv curves.new curves.txt
if [ "$what" = all ]; then
    group 8k 2x64x2 4 64 120 1e-3 3e-3 1e-2
    group gpt2 gpt2 4 32 40 1e-4 3e-4 1e-3
    group 8k 4x128x4 16 64 100 3e-4 1e-3 3e-3 1e-2
    group 8k 12x512x8 4 32 50 3e-4 1e-3 3e-3
    group 8k 2x64x2 64 64 120 1e-3 3e-3 1e-2
    group 8k 4x128x4 64 64 60 1e-3 3e-3 1e-2
fi
mv table.new table
