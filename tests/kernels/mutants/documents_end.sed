# kernels/cuda/attention_slopes.cuh cuda_attention_documents_backward_bf16 0
s|if (n \* 8 + e >= after) s|if (n * 8 + e > after) s|
