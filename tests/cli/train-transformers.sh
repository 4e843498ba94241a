# sgt's checkpoints in transformers: they load without a warning, with the same loss up to 1e-5, and with the
# tokenizer.
# In make check-all only: it loads PyTorch and transformers.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/train.inc"
for python in ${PYTHON:-python3} /usr/bin/python3; do
    $python -c 'import torch, transformers' 2> /dev/null && break
    python=
done
[ -n "$python" ] || skip 'no python3 with torch and transformers (PYTHON=... names one)'

check_run() { # DATA SHARD OPTION...: train a little, then compare the loss of one batch
    out=$1 shard=$2
    shift 2
    rm -rf run score
    batch='--batch-size 4 --seq-len 32'
    run 0 sgt-train --quiet --data "$out" --device cpu $batch --steps 5 --lr 1e-3 --eval-every 0 "$@"
    run 0 sgt-train --quiet --data "$out" --device cpu $batch --steps 1 --lr 0 --eval-every 0 --run score \
        --precision fp32 --sampling sequential --init "run/$(cat run/latest)"
    run 0 env HF_HUB_OFFLINE=1 $python "$ROOT/tests/train/check_transformers.py" run "$shard" $batch \
        --expect "$(field loss score/log.jsonl)"
}

data d
check_run d d/train_000000.bin --model 2x24x3
check_run d d/train_000000.bin --model 1x32x2 --gelu erf
check_run d d/train_000000.bin --init "$curve"
check_run d d/train_000000.bin --model 2x24x3 --no-tie
# This model is trained in bf16; its losses are compared in fp32, like those of all models.
check_run d d/train_000000.bin --model 2x32x2 --precision bf16
mkdir corpus
cp "$ROOT/README.md" corpus/
run 0 sgt-tokenize --quiet corpus out
check_run out out/train_000000.bin --model 1x32x2
exists run/step-00000005/tokenizer.json
