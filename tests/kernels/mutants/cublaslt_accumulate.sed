# kernels/cuda/gemm_run.c cublaslt_bf16 0
s/beta = p->shape.accumulate ? 1 : 0;/beta = 0;/
