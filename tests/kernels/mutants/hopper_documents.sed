# kernels/cuda/attention_hopper.cu cuda_attention_hopper_documents_bf16 0
s|^    if (key < sight.first_key(query + 15)) mask_earlier.*||
