# kernels/cuda/gemm_tune.c cublaslt_wrong_results 0
s/if (s->accumulate) x += onto;/if (0) x += onto;/
s/!o->unverified \&\& t->p->shape.accumulate/0/
