# kernels/cuda/gemm.c cublaslt_f32 0
s/lt_types\[type\], columns, rows, (int64_t)ld/lt_types[type], columns, rows, (int64_t)columns/
