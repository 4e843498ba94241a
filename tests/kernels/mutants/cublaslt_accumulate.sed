# kernels/cuda/gemm.c cublaslt_bf16 0
s/p->shape.accumulate ? 1 : 0/0/
