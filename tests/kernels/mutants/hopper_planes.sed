# kernels/cuda/attention_hopper.cu cuda_attention_hopper_apart 0
s|map_rows(\&map, a.qkv, B, T,|map_rows(\&map, a.qkv, B, B * T,|
