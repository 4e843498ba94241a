# kernels/cuda/layernorm.cu cuda_layernorm_backward_f16 0
s|c < a.C \&\& !a.first ? dev::ld16(a.dx|c < a.C ? dev::ld16(a.dx|
