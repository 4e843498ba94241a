# kernels/cuda/embed.cu cuda_large_embed_backward 0
s|(size_t)a.order\[i\] \* a.C|a.order[i] * a.C|
