# kernels/cuda/layernorm.cu cuda_layernorm_bf16 0
s|load_floats(w, a.w + c);|&for (float \&x : w) x = rounded<T>(x);|
