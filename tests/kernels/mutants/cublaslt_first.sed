# kernels/cuda/gemm.c cublaslt_wrong_first 0
s/else if (g->deterministic \&\& !g->unverified)/else if (0)/
