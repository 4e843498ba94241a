# kernels/cuda/gemm_cache.c cublaslt_cache 0
s/"%s\\t%s\\t%s\\t", g->device, g->library, key)/"%s\\tcuBLASLt\\t%s\\t", g->device, key)/
