# kernels/cuda/attention_hopper.cuh cuda_attention_hopper_bf16 0 1 2 3
s|dev::block_sync(); // every thread sees initialized barriers||
