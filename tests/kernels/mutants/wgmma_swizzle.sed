# tests/kernels/cuda_wrappers.cu wrapper_wgmma 0
s|row % 8)) \* 8|row % 4)) * 8|
