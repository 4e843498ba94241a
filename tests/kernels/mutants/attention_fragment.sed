# kernels/cuda/attention.cuh cuda_attention_bf16 0
s|dev::mma<T>(sum\[m\]\[n\], a\[m\], b\[0\], b\[1\])|dev::mma<T>(sum[m][n], a[m], b[0], b[2])|
