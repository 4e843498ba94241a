# tests/kernels/cuda_wrappers.cu wrapper_barriers race
s|block_sync(); /\* with the reads of a below \*/||
