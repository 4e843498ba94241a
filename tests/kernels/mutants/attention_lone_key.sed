# kernels/cuda/attention_slopes.cuh cuda_attention_documents_backward_bf16 0
s/sight.after_queries(key) == key + 1/key < 0/
