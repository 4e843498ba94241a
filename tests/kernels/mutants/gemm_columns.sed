# tests/kernels/cuda_gemm.cu pipeline_mma 0
s|k0 + column < k;|k0 + column < k + 8;|
