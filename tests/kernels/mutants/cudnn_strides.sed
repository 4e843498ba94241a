# kernels/cuda/attention_cudnn.c cudnn_bf16 0
s/{s->H \* s->T, s->T, 1, 1}/{s->T, s->H * s->T, 1, 1}/
