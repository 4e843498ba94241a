# kernels/cuda/layernorm.cu cuda_fused_dropout_bf16 0
s|y\[j\] += bias\[j\];|y[j] += a.drop.rate > 0 ? 2 * bias[j] : bias[j];|
