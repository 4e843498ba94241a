# kernels/cuda/layernorm.cu cuda_layernorm_bf16 0
s|if (first + i \* 32 \* V < a.C)|if (first + i * 32 * V < a.C + V)|
