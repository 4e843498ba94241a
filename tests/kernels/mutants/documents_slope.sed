# kernels/cuda/attention_backward.cu cuda_attention_documents_backward_bf16 0
s|^        if (key < sight.first_key(query + mine + 15)) mask_earlier.*||
