# tests/kernels/cuda_wrappers.cu wrapper_shuffles 0
s|out\[32 + l\] = shfl_xor|if (l < 16) out[32 + l] = shfl_xor|
