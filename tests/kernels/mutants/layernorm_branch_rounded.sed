# kernels/cuda/layernorm.cu cuda_layernorm_f16 0
s|x\[j\] = rounded<T>(x\[j\] + y\[j\]);|x[j] += y[j];|
