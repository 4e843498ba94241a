# kernels/cuda/attention.cu cuda_attention_bf16 0
s|mask_later(s\[m\], query + 16 \* m, key)|mask_later(s[m], query, key)|
