# kernels/cuda/gemm.c cublaslt_wrong_first 0
s/g->o.timing \&\& g->o.cache \&\& !g->o.unverified/g->o.timing \&\& g->o.cache/
