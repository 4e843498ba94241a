# kernels/cuda/attention_hopper.cuh cuda_attention_hopper_bf16 0
s|BARRIERS = 1024 |BARRIERS = 512 |
