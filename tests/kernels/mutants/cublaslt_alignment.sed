# kernels/cuda/gemm.c cublaslt_bf16 0
s/which <= SGT_LT_PREFERENCE_ALIGNMENT_D \&\& !rc/which < SGT_LT_PREFERENCE_ALIGNMENT_A \&\& !rc/
