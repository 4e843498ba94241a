# kernels/cuda/gemm.c cublaslt_late 0
s/sgt_lt_status rc = set_pointers(p, x->bias, x->aux);/static const void *was; if (!was) was = x->bias; sgt_lt_status rc = set_pointers(p, was, x->aux);/
