# kernels/cuda/layernorm_rows.cu cuda_layernorm_rows_bf16 0
s|if (c < a.C) load_floats(w, a.w + c);|&for (float \&x : w) x = rounded<T>(x);|
