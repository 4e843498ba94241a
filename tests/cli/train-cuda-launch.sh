# sgt-train --device cuda on the host, with failing launches (SGT_HOST_FAULT). If a launch is
# refused, the message names the kernel and its shape. If a kernel fails later, on the device, the
# message names it only with --sync-kernels.
# In make check-all only: it needs CUDA's backend on the host.
. "$ROOT/tests/cli/train.inc"
cuda_on_the_host
data d
shape="--device cuda --model 1x16x2 --seq-len 16 --batch-size 2"
cuda="--data d $shape --steps 2 --eval-every 0 --quiet --deterministic --no-self-check"

# fails FAILURE MESSAGE OPTION...: with the fault FAILURE, sgt-train must fail with MESSAGE
fails() {
    failure=$1 message=$2
    shift 2
    rm -rf r
    run 1 env SGT_HOST_FAULT="$failure" sgt-train $cuda --run r "$@"
    stdout_is ''
    stderr_is "sgt-train: $message"
}
norm='norm_rows_kernel (grid 8, block 128, 0 bytes of shared memory)'
attention='attention_kernel (grid 4, block 128, 30720 bytes of shared memory)'
product='cuBLASLt 13.1.0: 32x48x16,nn,16,48,48,bf16,bf16,bias'
address='an illegal memory access was encountered (CUDA error 700)'
unnamed='the device: an illegal memory access was encountered (CUDA error 700; find the failed launch with --sync-kernels)'

# A refused launch is named, with and without graphs.
for option in '' --no-graphs --sync-kernels; do
    fails norm_rows_kernel:refuse "$norm: invalid argument (CUDA error 1)" $option
    fails 'product_*':refuse "$product: invalid argument (CUDA error 1)" $option
done
fails attention_kernel:refuse "$attention: invalid argument (CUDA error 1)"

# A failure on the device is noticed at the next wait, so the message cannot name the kernel.
# --sync-kernels names the first kernel that failed.
for name in norm_rows_kernel 'product_*'; do fails "$name:error" "$unnamed"; done
fails norm_rows_kernel:error "$norm: $address" --sync-kernels
fails 'product_*':error "$product: $address" --sync-kernels
fails copy:error "a copy of 32 bytes: $address" --sync-kernels
SGT_HOST_CUDNN=1
export SGT_HOST_CUDNN
fails cudnn:error "cuDNN: attention forward (2 x 16 x 2 x 8): $address" --sync-kernels --attention cudnn
run 1 env SGT_HOST_FAULT=norm_rows_kernel:error sgt-bench step $shape --steps 1 --sync-kernels
stderr_has "sgt-bench step: $norm: $address"

# --sync-kernels changes no bit of a run.
run 0 sgt-train $cuda --run plain
run 0 sgt-train $cuda --run waited --sync-kernels
same plain/step-00000002/model.safetensors waited/step-00000002/model.safetensors
