# kernels/cuda/gemm.c cublaslt_bf16 0
s/&x->h, x->onto, p->d/\&x->h, x->d, p->d/
