# tests/kernels/cuda_gemm.cu pipeline_mma race
s|block_sync();       /\* everybody.s copies are there \*/||
