# kernels/cuda/gemm_run.c cublaslt_late 0
s/sgt_lt_status rc = gemm_set_pointers(p, bias, aux);/static const void *was; if (!was) was = bias; sgt_lt_status rc = gemm_set_pointers(p, was, aux);/
