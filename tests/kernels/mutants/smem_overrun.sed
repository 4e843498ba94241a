# tests/kernels/cuda_wrappers.cu wrapper_matrices 0
s|dim3(32), 512, 0, got|dim3(32), 508, 0, got|
