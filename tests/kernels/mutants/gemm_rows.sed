# tests/kernels/cuda_gemm.cu pipeline_mma 0
s|row0 + row < rows|row0 + row <= rows|
