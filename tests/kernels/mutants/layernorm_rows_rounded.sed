# kernels/cuda/layernorm_rows.cu cuda_layernorm_rows_forward_f16 0
s|x\[j\] = rounded<T>(x\[j\] + y\[j\]);|x[j] += y[j];|
