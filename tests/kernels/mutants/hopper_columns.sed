# kernels/cuda/attention_hopper.cuh cuda_attention_hopper_bf16 0
s|desc_columns(tile, K \* 16 \* 128)|desc_columns(tile, 0)|
