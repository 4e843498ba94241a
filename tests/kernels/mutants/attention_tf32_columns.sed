# kernels/cuda/attention.cuh cuda_attention_tf32 0
s|a.set(i, p\[k\]\[i % 2 \* 2 + i / 2\])|a.set(i, p[k][i])|
