# kernels/cuda/gemm_cache.c cublaslt_cache_damaged 0
s/return memcmp(line + n - 8, check, 8) == 0;/return 1;/
