# kernels/cuda/attention_cudnn.c cudnn_bf16 0
s/{H \* head, head, 1, T}/{H * head, head, T, 1}/
