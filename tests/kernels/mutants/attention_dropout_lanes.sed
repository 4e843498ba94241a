# kernels/cuda/attention.cuh cuda_attention_dropout_bf16 0
s|shift = t % 2 \* 2;|shift = 0;|
