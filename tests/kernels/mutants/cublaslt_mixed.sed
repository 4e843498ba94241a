# kernels/cuda/gemm.c cublaslt_mixed_bf16 0
s/.f = f, .h = h}/.f = f, .h = 1}/
