# kernels/cuda/attention_cudnn.c cudnn_bf16 0
s/if (a->o.clear) sgt_cuda_zero(s, sums/if (0) sgt_cuda_zero(s, sums/
