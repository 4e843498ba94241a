# kernels/cuda/gemm.c cublaslt_multiprocessors 0
s|SGT_LT_DESC_SM_COUNT_TARGET, &s->multiprocessors|SGT_LT_DESC_SM_COUNT_TARGET, \&epilogue|
