# tests/kernels/cuda_wrappers.cu wrapper_barriers race
s|warp_sync(); /\* with the reads of b, of the same warp \*/||
