# kernels/cuda/gemm_run.c cublaslt_mixed_bf16 0
s/const factors mix = {f, h};/const factors mix = {f, 1};/
