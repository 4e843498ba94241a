# kernels/cuda/layernorm_rows.cu cuda_layernorm_rows_forward_bf16 0
s|if (first + i \* 32 \* V < a.C)|if (first + i * 32 * V < a.C + V)|
