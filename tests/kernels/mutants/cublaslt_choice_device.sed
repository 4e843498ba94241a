# kernels/cuda/gemm_cache.c cublaslt_choices 0
s/!string_is(g->choices, "device", g->device) ||//
