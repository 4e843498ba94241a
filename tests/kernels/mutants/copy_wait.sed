# tests/kernels/cuda_wrappers.cu wrapper_copies 0 1 2
s|cp_async_wait<2>();|cp_async_wait<3>();|
