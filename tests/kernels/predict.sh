#!/bin/sh
# predict.sh BUILD [OPTION]...: predict the time of a training step on an H100. The default is GPT-2
# 124M with 64 rows of 1,024 tokens and every variant; OPTIONs go to sgt-bench step and change it.
# No GPU is needed (predict.py).
set -u
cd "$(dirname "$0")/../.." || exit 1
B=$1
shift
command -v python3 > /dev/null || { echo 'predict needs python3' >&2; exit 1; }
list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT INT TERM
tests/kernels/launches.sh "$B" "$list" --model gpt2 --seq-len 1024 --batch-size 64 --precision bf16 --attention cudnn \
    --variant all "$@" || exit 1
PYTHONDONTWRITEBYTECODE=1 python3 tests/kernels/predict.py "$list" tests/kernels/machine-code.txt tests/kernels/work.txt
