# kernels/cuda/gemm_run.c cublaslt_bf16 0
s/&beta, onto, p->d/\&beta, d, p->d/
