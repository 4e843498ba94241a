# kernels/cuda/attention_cudnn.c cudnn_bf16 0
s/{H \* T, T, 1, 1}/{T, H * T, 1, 1}/
