# tests/kernels/cuda_wrappers.cu wrapper_barriers race
s|^    a\[i\] = in\[i\];|    if (i) a[i] = in[i];|
