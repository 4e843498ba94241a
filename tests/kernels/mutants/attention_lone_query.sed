# kernels/cuda/attention_slopes.cuh cuda_attention_documents_backward_bf16 0
s/sight.first_key(query) == query ? 0/sight.a.length == 1 ? 0/
