# kernels/cuda/gemm.c cublaslt_timing 0
s/if (rc == SGT_OK \&\& status)/if (rc == SGT_OK \&\& status \&\& 0)/
