# kernels/cuda/layernorm.cu cuda_layernorm_f32 0
s|load(bias, a.bias + c)|load(bias, a.bias)|
