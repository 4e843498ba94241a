# kernels/cuda/attention_hopper.cuh cuda_attention_hopper_bf16 0
s|b + k \* dev::DESC_ROWS16|b + k * dev::DESC_K16|
