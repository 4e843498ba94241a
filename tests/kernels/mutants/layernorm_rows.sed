# kernels/cuda/layernorm.cu cuda_layernorm_f32 0
s|if (row >= a.n) return;|if (row > a.n) return;|
