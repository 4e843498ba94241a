# kernels/cuda/gemm.c cublaslt_cache 0
s/"%s, %s\\n", g->o.device, g->library)/"%s\\n", g->o.device)/
