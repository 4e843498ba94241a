# kernels/cuda/gemm.c cublaslt_step_f32 0
s/int32_t first = s->trans_b ? SGT_LT_OP_T : SGT_LT_OP_N, second = s->trans_a/int32_t first = s->trans_a ? SGT_LT_OP_T : SGT_LT_OP_N, second = s->trans_b/
