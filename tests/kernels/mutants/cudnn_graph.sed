# kernels/cuda/attention_cudnn.c cudnn_bf16 0
s/sgt_cudnn_matmul(g, dst, q, packed(s, DK))/sgt_cudnn_matmul(g, ds, q, packed(s, DK))/
