# sgt-bench attention: its table, its JSON, and the options it refuses. The test does not check speeds.
# In make check-all only: it measures every attention on the host.
. "$ROOT/tests/cli/lib.sh"
. "$ROOT/tests/cli/bench.inc"
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME
small="--batch-size 2 --seq-len 20 --heads 3 --head-size 16"

run 0 sgt-bench attention --device cpu $small --threads 2
stderr_is ''
stdout_has 'fp32, 2 rows of 20 tokens, 3 heads of 16; causal, the masked half is not counted'
stdout_matches '^\* own +[0-9.]+ +[0-9.]+ +[0-9.]+ % +[0-9.]+ +[0-9.]+ +[0-9.]+ %$'
table 'Peak, a large product of matrices: '
run 0 sgt-bench attention --device cpu $small --threads 1 --json
for name in forward_ms backward_ms forward_tflops backward_tflops; do stdout_matches "\"$name\": [0-9.e-]*[1-9]"; done
# The printed speeds count two products forward and five backward, each half masked: B H T T D
# multiplications.
check 'its operations' awk -v a="$(field forward_ms .stdout)" -v x="$(field forward_tflops .stdout)" \
    -v b="$(field backward_ms .stdout)" -v y="$(field backward_tflops .stdout)" 'BEGIN {
    one = 2 * 3 * 20 * 20 * 16 * 1e-9
    exit !(a * x / one > 1.9999 && a * x / one < 2.0001 && b * y / one > 4.9999 && b * y / one < 5.0001) }'
run 0 sgt-bench attention --device cpu $small --quiet
stdout_is ''

run 2 sgt-bench attention --device cpu --precision fp16
stderr_has "sgt-bench attention: --precision fp16: a CPU's attention is in fp32 or bf16"
if sgt-bench gemm --device cpu --precision bf16 --batch-size 1 --seq-len 8 --model 1x16x1 --seconds 0.001 2>&1 |
    grep -q 'own matrix products'; then
    run 0 sgt-bench attention --device cpu $small --precision bf16
    stdout_has 'bf16, 2 rows of 20 tokens, 3 heads of 16; causal, the masked half is not counted'
else
    run 2 sgt-bench attention --device cpu --precision bf16
    stderr_has "sgt-bench attention: --precision bf16: this CPU's attention is in fp32"
fi
run 2 sgt-bench attention --device cpu --batch-size 65536 --seq-len 65536
stderr_has 'numbers are over the 2^32 that are measured'
run 2 sgt-bench attention set
stderr_has 'sgt-bench attention: set: no operands here, only options'

# ---- CUDA on the host: every implementation, and the reason if one cannot run ----
cuda_on_the_host
run 0 env SGT_HOST_CUDNN=1 sgt-bench attention --device cuda $small
stderr_is ''
stdout_has 'bf16, 2 rows of 20 tokens, 3 heads of 16;'
for way in own cudnn naive; do stdout_matches "^[* ] $way +[0-9.]+ +[0-9.]+ +[-0-9.% ]+ +[0-9.]+ +[0-9.]+ "; done
check 'the fastest has the star' awk '/forward ms/ { on = 1; next } !NF { on = 0 }
    on { at = $1 == "*" ? 3 : 2; step = $at + $(at + ($(at + 3) == "%" ? 4 : 3)); if ($1 == "*") star = step
        if (!least || step < least) least = step }
    END { exit star != least }' .stdout
table 'Peak, a large product of matrices: '
run 0 sgt-bench attention --device cuda $small --head-size 12 --precision fp32 --json
check 'by tiles, and naive' test "$(grep -c '"forward_ms"' .stdout)" -eq 2
stdout_has '"why_not": "--attention own: heads of 12 numbers, it takes multiples of 8 to 128"'
stdout_has '"attention": "tiled"'
stdout_matches '"why_not": "--attention cudnn: cuDNN: fused attention takes bf16 and fp16, not fp32"'
