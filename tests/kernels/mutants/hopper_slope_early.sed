# kernels/cuda/attention_hopper_backward.cu cuda_attention_hopper_backward_bf16 0
s|^    dev::wgmma_wait<1>(dp);||
