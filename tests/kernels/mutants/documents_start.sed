# kernels/cuda/attention.cuh cuda_attention_documents_bf16 0
s|first_key(query + g + half \* 8) - key|first_key(query + g + half * 8) - 1 - key|
