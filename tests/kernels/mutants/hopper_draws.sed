# kernels/cuda/attention_hopper.cuh cuda_attention_hopper_dropout_bf16 0
s|by_rows(kept, query, key + 64 \* i)|by_rows(kept, query, key)|
