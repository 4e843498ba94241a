# kernels/cuda/attention_cudnn.c cudnn_bf16 0
s/a->masked = -INFINITY/a->masked = 0/
