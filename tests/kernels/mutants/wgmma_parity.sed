# tests/kernels/cuda_gemm.cu pipeline_wgmma 0
s|(i / STAGES - 1) % 2|i / STAGES % 2|
