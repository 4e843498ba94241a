# kernels/cuda/gemm.c cublaslt_wrong_first 0
s/time_it \&\& g->cache \&\& !g->unverified/time_it \&\& g->cache/
