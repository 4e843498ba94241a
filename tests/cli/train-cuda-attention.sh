# sgt-train --attention with CUDA on the host (build/host): which implementation a run uses, and its
# notices. An implementation that is requested but cannot run is refused by name.
# In make check-all only: it trains on the host in place of a GPU.
. "$ROOT/tests/cli/train.inc"
cuda_on_the_host
data d
cuda="--data d --device cuda --seq-len 16 --batch-size 2 --steps 1 --eval-every 0"

# takes LINES PATH OPTION...: the run must use the implementation PATH, after LINES lines about
# attention
takes() {
    lines=$1 path=$2
    shift 2
    run 0 sgt-train $cuda --run r --force --verbose "$@"
    stderr_has "sm_90, $path kernels, "
    [ "$(grep -c '^sgt-train: attention: ' .stderr)" -eq "$lines" ] || fail "not $lines lines of attention"
}
takes 1 'our attention' --model 1x16x2 --precision bf16
stderr_has "sgt-train: attention: own (cuDNN's cannot be used: cuDNN: libcudnn.so.9 was not found)"
takes 0 'our attention' --model 1x16x2 --precision fp16 --attention own --dropout 0.1
takes 0 'naive attention' --model 1x16x2 --precision fp32 --attention naive
naive='sgt-train: attention: naive, which stores T x T scores (flash attention cannot be used: '
for precision in fp32 tf32; do takes 0 'our attention' --model 1x16x2 --precision $precision; done
for precision in fp32 bf16; do
    takes 1 'naive attention' --model 1x24x2 --precision $precision
    stderr_has "${naive}the head size is 12, but it must be a multiple of 8, up to 128)"
done
takes 1 'naive attention' --model 1x200x1 --precision fp16
stderr_has "${naive}the head size is 200, but it must be a multiple of 8, up to 128)"
run_silent sgt-train --quiet $cuda --run r --force --model 1x24x2

# refuses MESSAGE OPTION...: sgt-train must fail with that message
refuses() {
    message=$1
    shift
    run_failure "--attention $message" sgt-train --quiet $cuda --run refused "$@"
    absent refused
}
refuses 'own: the head size is 12, but it must be a multiple of 8, up to 128' --attention own --model 1x24x2 --precision fp32
refuses 'cudnn: cuDNN: fused attention needs bf16 or fp16, not fp32' --attention cudnn --model 1x16x2 --precision tf32
refuses 'cudnn: cuDNN: fused attention needs a head size that is a multiple of 8, up to 128, not 12' --attention cudnn \
    --model 1x24x2
refuses 'cudnn: --document-mask is not supported with cuDNN' --attention cudnn --model 1x16x2 --document-mask
refuses 'cudnn: --dropout is not supported with cuDNN' --attention cudnn --model 1x16x2 --dropout 0.1

# With the stand-in for cuDNN, cuDNN is used if it is requested by name. If both implementations can
# run, the faster one is used, with one line.
SGT_HOST_CUDNN=1
export SGT_HOST_CUDNN
takes 0 "cuDNN's attention" --model 1x16x2 --attention cudnn
# Without a self-check, dQ's sums are cleared before each backward pass: engines may need that. With
# --gelu erf, the bits do not depend on timings.
for SGT_HOST_CUDNN in adds 1; do
    takes 0 "cuDNN's attention" --model 1x16x2 --attention cudnn --gelu erf --no-self-check
    grep -o '"grad_norm": *[^,]*' r/log.jsonl > norm.$SGT_HOST_CUDNN
done
same norm.adds norm.1
takes 0 'our attention' --model 1x16x2 --deterministic
takes 0 'our attention' --model 1x16x2 --document-mask
run 0 sgt-train $cuda --run r --force --model 1x16x2 --verbose
stderr_matches "^sgt-train: attention: (own|cuDNN's) \\(forward and backward of a layer: own [0-9.]+ ms, cuDNN's [0-9.]+ ms\\)$"
# cuDNN returns NaN as dQ, or our kernels read deltas that are NaN, so the loss is finite only at
# first. One line names the attention and what to try.
not_finite() { # INSTEAD MODEL ATTENTION
    run 0 env SGT_HOST_CUDNN=nan SGT_HOST_FAULT=delta_kernel:wrong sgt-train --no-self-check --quiet $cuda --run r --force \
        --model $2 --steps 3 --attention $3 --lr 0.001
    stderr_is "sgt-train: step 1: the gradient norm is not a number, but the loss is finite: start again with --attention $1, \
or with an lr 10 times lower (--lr 0.0001); see grad_norm in log.jsonl and --grad-clip"
}
not_finite "own instead of cuDNN's attention" 1x16x2 cudnn
not_finite 'naive instead of our attention' 1x16x2 own
not_finite 'mma instead of our attention for sm_90' 1x128x2 own
# If cuDNN fails during the trial, the other implementation is used.
SGT_HOST_CUDNN=1
run 0 env SGT_HOST_FAULT=cudnn:refuse sgt-train --no-self-check $cuda --run r --force --model 1x16x2 --verbose
stderr_has 'sgt-train: attention: own (cuDNN: attention forward (2 x 16 x 2 x 8): invalid argument (CUDA error 1))'

# All ranks use the implementation that is faster on rank 0. If one rank lacks cuDNN, all use ours.
. "$ROOT/tests/cli/ranks.inc"
unset SGT_HOST_CUDNN
ranks="sgt-train $cuda --model 1x16x2 --no-self-check --run r --force"
for first in 1 slow; do
    pair 0 "env SGT_HOST_CUDNN=$first SGT_HOST_NCCL=trace=calls $ranks --verbose" \
        "env SGT_HOST_CUDNN=$([ $first = 1 ] && echo slow || echo 1) SGT_HOST_NCCL=trace=calls $ranks"
    kernels='our attention'
    [ $first = slow ] || kernels="cuDNN's attention"
    stderr_has "sm_90, $kernels, 2 ranks kernels, "
    same calls.0 calls.1 # the calls, each with the number of kernels before it
done
pair 0 "env SGT_HOST_CUDNN=1 $ranks" "$ranks"
# All ranks compute as many rows of logits at a time as rank 0, also if others are faster on rank 1:
# products of many rows are slow on one rank, and many products on the other.
chunks="SGT_HOST_NCCL=trace=calls $ranks --variant head-chunks --batch-size 18"
pair 0 "env SGT_HOST_CUBLASLT=slow-rows $chunks" "env SGT_HOST_CUBLASLT=slow-calls $chunks"
same calls.0 calls.1
cp calls.0 in-chunks
pair 0 "env SGT_HOST_CUBLASLT=slow-calls $chunks" "env SGT_HOST_CUBLASLT=slow-rows $chunks"
same calls.0 calls.1
! cmp -s calls.0 in-chunks || fail 'the same rows on both'
