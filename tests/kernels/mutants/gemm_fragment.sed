# tests/kernels/cuda_gemm.cu pipeline_mma 0
s|mma<T>(sum\[j\], left, right\[0\], right\[1\])|mma<T>(sum[j], left, right[0], right[2])|
