# kernels/cuda/gemm.c cublaslt_wrong_results 0
s/input(t, OUT_D, s->out, at)/0/
s/!o->unverified \&\& t->p->shape.accumulate/0/
