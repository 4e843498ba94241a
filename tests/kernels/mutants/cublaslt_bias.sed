# kernels/cuda/gemm.c cublaslt_late 0
s/sgt_lt_status rc = set_pointers(p, bias, aux);/static const void *was; if (!was) was = bias; sgt_lt_status rc = set_pointers(p, was, aux);/
