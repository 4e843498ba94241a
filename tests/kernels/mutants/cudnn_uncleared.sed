# kernels/cuda/attention_cudnn.c cudnn_bf16 0
s/sgt_cuda_zero(s, (char \*)workspace + delta_bytes(&a->o), dq_bytes(&a->o))/(void)s, (void)workspace/
