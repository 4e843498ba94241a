# kernels/cuda/attention.cuh cuda_attention_bf16 0
s|+ (e \& 1) > query + g|+ (e \& 1) >= query + g|
