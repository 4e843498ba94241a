# kernels/cuda/attention_cudnn.c cudnn_bf16 0
s/put(&p, DK, (char \*)dqkv + third)/put(\&p, DK, (char *)dqkv + 2 * third)/
