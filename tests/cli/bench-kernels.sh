# sgt-bench kernels: its table, its JSON, and the options it refuses, on CUDA's kernels on the host. The test does not
# check speeds.
# In make check-all only: it measures for half a minute.
. "$ROOT/tests/cli/bench.inc"
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME

run_usage '--device cpu: must be one of auto|cuda' sgt-bench kernels --device cpu
run_failure_about 'needs CUDA (on a CPU, use sgt-bench step or, ' env CUDA_VISIBLE_DEVICES= sgt-bench kernels --quiet
run_usage 'out/: only options are accepted' sgt-bench kernels out/

cuda_on_the_host
run 2 sgt-bench kernels --device cuda --model 1x17x2
stderr_has 'sgt-bench kernels: '
run 2 sgt-bench kernels --device cuda --batch-size 65536 --seq-len 65536
stderr_has 'numbers exceed the limit of 2^32'

# ---- matrix products, with each epilogue ----
small='--device cuda --model 1x16x2 --batch-size 1 --seq-len 8'
run_silent sgt-bench kernels $small --json
check 'products and attention' holds '.results | map(select(.layer != "attention")) as $p |
    ($p | length == 21 and all(.epilogue and .m > 0 and .n > 0 and .k > 0)) and
    [.[] | select(.layer == "attention" and .pass == "forward") | .attention] == ["own", "cudnn", "naive"]'
check 'each has a time or a reason' holds '[.results[] | select((.us > 0 and .tflops > 0) != (.why_not != null))] | length == 27'
check 'the head of it' holds '.rows == 8 and .batch == 1 and .seq == 8 and .heads == 2 and .head_size == 8 and
    .precision == "bf16" and .device != ""'
# A matrix product takes 2 m n k operations. Attention has two matrix products in the forward pass
# and five in the backward pass. The causal mask halves each, to B H T T D multiplications.
check 'its operations' holds '.results | map(select(.us) | (.us * .tflops * 1e6) / (if .m then 2 * .m * .n * .k
    else 2 * 8 * 8 * 8 * (if .pass == "forward" then 2 else 5 end) end)) | all(. > .999 and . < 1.001)'
run_says '' sgt-bench kernels $small --kind gemm --quiet
stderr_is ''

# ---- every attention, and the reason if one cannot run ----
cuda='--device cuda --kind attention --batch-size 2 --seq-len 20'
run_silent env SGT_HOST_CUDNN=1 sgt-bench kernels $cuda --model 1x48x3
stdout_has '1x48x3, bf16, 2 x 20 tokens'
for name in own cudnn naive; do stdout_matches "^[* ] attention +forward +$name +[0-9.]+ +[0-9.]+"; done
table 'Peak speed, measured with a large matrix product: '
run 0 sgt-bench kernels $cuda --model 1x36x3 --precision fp32 --json
check 'naive alone' holds '[.results[] | select(.us) | .attention] == ["naive", "naive"]'
stdout_has '"why_not": "--attention own: the head size is 12, but it must be a multiple of 8, up to 128"'
stdout_matches '"why_not": "--attention cudnn: cuDNN: fused attention needs bf16 or fp16, not fp32"'
run 0 sgt-bench kernels --device cuda --kind gemm --model 1x16x2 --batch-size 1 --seq-len 8 --layer head --json
check 'products' holds '[.results[].layer] == ["head", "head", "head"] and .device != ""'
