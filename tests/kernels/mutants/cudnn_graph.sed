# kernels/cuda/attention_cudnn.c cudnn_bf16 0
s/matmul(g, dst, q, half(g, DK, PACKED))/matmul(g, ds, q, half(g, DK, PACKED))/
