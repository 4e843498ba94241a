# kernels/cuda/attention_cudnn.c cudnn_f16 0
s/if (a->clear_sums) sgt_cuda_zero/if (0) sgt_cuda_zero/
