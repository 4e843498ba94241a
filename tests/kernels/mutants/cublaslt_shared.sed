# kernels/cuda/gemm.c cublaslt_plans 0
s/s->accumulate ? ",add" : ""/""/
