# sgt-train --device cuda with sizes beyond 32 bits, with CUDA on the host: the estimate for GPT-2
# XL with rows of 8192 tokens and 2^34 logits, and the largest number of tokens that the kernels
# support.
# In make check-all only: a minute of page faults in sparse memory.
. "$ROOT/tests/cli/train.inc"
cuda_on_the_host
mkdir d
cp "$curve/tokens.bin" d/train_000000.bin # a vocabulary of 50,257, which is padded to 50,304 in memory
kind() { sed "s/.*\"name\": \"$1\", \"bytes\": \([0-9]*\).*/\1/" ".kinds$2"; }
for rows in 64 128; do
    run 0 sgt-train --estimate-memory --json --data d --device cuda --model gpt2-xl --seq-len 8192 --batch-size $rows
    mv .stdout .kinds$rows
done
# Per token, the head needs logits of two bytes each and a loss of four bytes.
[ "$(kind head 64)" = $((64 * 8192 * (50304 * 2 + 4))) ] || fail "logits: $(cat .kinds64)"
[ "$(kind head 128)" = $((128 * 8192 * (50304 * 2 + 4))) ] || fail "logits: $(cat .kinds128)"
# In each of the 48 layers, a token's activations are 16 C numbers of two bytes and 4 + 25 floats.
# The embeddings and the last LayerNorm add to that.
[ "$(kind activations 64)" = $((64 * 8192 * (48 * (16 * 1600 * 2 + 29 * 4) + 2 * 1600 * 2 + 2 * 4))) ] ||
    fail "activations: $(cat .kinds64)"
[ "$(kind activations 128)" = $((2 * $(kind activations 64))) ] || fail "activations: $(cat .kinds128)"

for rows in 131073 1048576; do
    run 1 sgt-train --data d --device cuda --model 1x16x2 --seq-len 8192 --batch-size $rows --run r
    stdout_is ''
    stderr_is "sgt-train: backend: $rows rows of 8192 tokens: CUDA's kernels take at most 1073741824 tokens"
    absent r
done
# A batch needs 8 GiB, which are not available.
(ulimit -v 6000000 && run 1 sgt-train --data d --device cuda --model 1x16x2 --seq-len 8192 --batch-size 131072 --run r)
stderr_matches '^sgt-train: out of pinned memory: 8192.0 MiB could not be allocated'
