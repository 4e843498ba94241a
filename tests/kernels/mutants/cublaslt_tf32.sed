# kernels/cuda/gemm.c cublaslt_tf32_asked 0
s/s->tf32 ? SGT_LT_COMPUTE_32F_FAST_TF32 : SGT_LT_COMPUTE_32F,/SGT_LT_COMPUTE_32F_FAST_TF32,/
