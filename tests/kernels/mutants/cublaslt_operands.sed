# kernels/cuda/gemm.c cublaslt_f32 0
s/int32_t first = s->trans_b ?/int32_t first = s->trans_a ?/
s/ second = s->trans_a ?/ second = s->trans_b ?/
