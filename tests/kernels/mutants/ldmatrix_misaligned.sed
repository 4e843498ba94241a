# tests/kernels/cuda_wrappers.cu wrapper_matrices 0
s|ldmatrix_x4(plain, s + l \* 4)|ldmatrix_x4(plain, s + l * 4 + 1)|
