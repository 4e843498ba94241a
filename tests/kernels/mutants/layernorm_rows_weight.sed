# kernels/cuda/layernorm.cu cuda_layernorm_backward_bf16 0
s|if (c < a.C) load_floats(w, a.w + c);|&for (float \&x : w) x = rounded<T>(x);|
