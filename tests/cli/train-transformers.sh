# sgt's checkpoints in transformers: the tokenizer gives the same ids and text, also for users' own
# vocabularies. With torch, models load without a warning and have the same loss up to 1e-5.
# In make check-all only: it loads PyTorch and transformers.
. "$ROOT/tests/cli/train.inc"
. "$ROOT/tests/cli/wide.inc"
find_python transformers
[ -n "$python" ] || skip 'no python3 with transformers (PYTHON=... names one)'

# as_tokenizer NAME OPTION...: tokenize a text with these options, and compare the ids with
# AutoTokenizer's
as_tokenizer() {
    name=$1
    shift
    run 0 sgt-tokenize --quiet "$@" text.txt "$name"
    run 0 sgt-train --quiet --data "$name" --device cpu --model 1x8x1 --seq-len 16 --batch-size 1 --steps 1 --eval-every 0 \
        --run "$name-run"
    run 0 env HF_HUB_OFFLINE=1 $python "$ROOT/tests/train/check_tokenizer.py" "$name-run/step-00000001" text.txt \
        "$name/train_000000.bin"
}
grep -vF '<|endoftext|>' "$ROOT/tests/data/vocab/text.txt" > text.txt # AutoTokenizer reads the literal as the token
printf "Hello , world ! It 's  1234567 , isn 't it ? DON'T\n\n  cafe\314\201 a\314\212 \357\254\201 ?  \t.\n" >> text.txt
as_tokenizer gpt2
for pattern in gpt2 cl100k llama3 nanochat '\p{L}+|\p{N}|[^\p{L}\p{N}]+'; do
    rm -rf v own own-run
    run 0 sgt-tokenize --quiet --train-vocab 400 --pattern "$pattern" text.txt v
    as_tokenizer own --vocab v
done
for form in nfc nfkc; do as_tokenizer $form --vocab v --normalize $form; done
sed 's/<|endoftext|>/<\/s>/g' v/tokenizer.json > end.json
as_tokenizer end --vocab end.json
wide_vocabulary merges.txt # ids of 4 bytes
as_tokenizer wide --vocab merges.txt --pattern cl100k
if known_vocabularies "$python"; then
    for wheel in "$kept"/llama_models-*.whl "$kept"/dashscope-*.whl "$kept"/litellm-*.whl; do run 0 "$python" -m zipfile -e "$wheel" known; done
    n=0
    for file in known/llama_models/llama3/tokenizer.model known/dashscope/resources/qwen.tiktoken \
        known/litellm/litellm_core_utils/tokenizers/*_tokenizer.json; do
        as_tokenizer known$((n += 1)) --vocab $file
    done
fi

$python -c 'import torch' 2> /dev/null || skip "the models' losses: no python3 with torch (PYTHON=... names one)"

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
