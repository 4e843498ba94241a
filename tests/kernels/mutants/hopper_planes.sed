# kernels/cuda/attention_hopper.cu cuda_attention_hopper_apart 0
s|a.qkv, B, T, 3 \* H \* D|a.qkv, B, B * T, 3 * H * D|
