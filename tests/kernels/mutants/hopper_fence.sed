# kernels/cuda/attention_hopper.cu cuda_attention_hopper_bf16 0
s|^        dev::wgmma_fence(s);||
s|^        dev::wgmma_fence(p, out);||
