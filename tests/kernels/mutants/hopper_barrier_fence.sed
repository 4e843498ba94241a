# kernels/cuda/attention_hopper.cuh cuda_attention_hopper_bf16 0
s|^        dev::mbar_init_fence();||
