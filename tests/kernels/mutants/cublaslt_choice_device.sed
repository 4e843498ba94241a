# kernels/cuda/gemm.c cublaslt_choices 0
s/"%s, %s\\n", o->device, g->library)/"%s\\n", g->library)/
