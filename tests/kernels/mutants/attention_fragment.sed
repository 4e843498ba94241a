# kernels/cuda/attention.cuh cuda_attention_bf16 0
s|dev::mma<T>(c\[m\]\[n\], left, right\[0\], right\[1\])|dev::mma<T>(c[m][n], left, right[0], right[2])|
