# tests/kernels/cuda_gemm.cu pipeline_mma race
s|block_sync(); /\* before the next copies overwrite it \*/||
