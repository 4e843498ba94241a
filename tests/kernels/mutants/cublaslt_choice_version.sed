# kernels/cuda/gemm.c cublaslt_choices 0
s/"%s, %s\\n", g->o.device, g->library)/"%s\\n", g->o.device)/
