# kernels/cuda/gemm.c cublaslt_f32 0
s/trans ? columns : rows, (int64_t)ld/trans ? columns : rows, (int64_t)(trans ? rows : columns)/
