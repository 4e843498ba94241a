# kernels/cuda/attention_cudnn.c cudnn_bf16 0
s/{s->H \* head, head, 1, s->T}/{s->H * head, head, s->T, 1}/
