# tests/kernels/cuda_gemm.cu wrapper_wgmma race
s|block_sync(); /\* everybody.s part, fenced.*||
