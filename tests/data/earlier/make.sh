#!/bin/sh
# make.sh BIN: make the set and the run of this folder with the programs in BIN. Those here were
# made with the programs of commit c02046b, on 2026-11-25; tests/cli/earlier.sh opens them with
# today's. All paths in them are relative.
set -eu
cd "$(dirname "$0")"
rm -rf set run
"$1/sgt-tokenize" --quiet --vocab ranks.tiktoken --split 50% corpus set
"$1/sgt-train" --quiet --data set --run run --model 1x16x2 --batch-size 4 --seq-len 32 --steps 6 --save-every 6 \
    --eval-every 3 --lr 1e-2 --precision fp32 --threads 1 --cpu plain
