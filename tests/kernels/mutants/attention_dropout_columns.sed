# kernels/cuda/attention.cuh cuda_attention_dropout_backward_f16 0
s|key + g / 4 \* 4 + m / 2 \* 8|key + g / 4 * 4|
