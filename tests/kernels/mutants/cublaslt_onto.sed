# kernels/cuda/gemm.c cublaslt_bf16 0
s/&beta, onto, p->d/\&beta, d, p->d/
