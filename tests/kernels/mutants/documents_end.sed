# kernels/cuda/attention_slopes.cuh cuda_attention_documents_backward_bf16 0
s|after_queries(key + row) - query|after_queries(key + row) + 1 - query|
