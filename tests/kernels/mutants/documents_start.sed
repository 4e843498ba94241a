# kernels/cuda/attention.cuh cuda_attention_documents_bf16 0
s|first_key(query + row) - key|first_key(query + row) - 1 - key|
