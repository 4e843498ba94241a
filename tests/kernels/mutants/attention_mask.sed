# kernels/cuda/attention.cu cuda_attention_bf16 0
s|+ (e \& 1) > query + g|+ (e \& 1) >= query + g|
