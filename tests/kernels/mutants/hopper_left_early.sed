# kernels/cuda/attention_hopper.cu cuda_attention_hopper_bf16 0
s|^        dev::wgmma_wait<0>(out, p);|        pack_rows<T>(p, s); dev::wgmma_wait<0>(out, p);|
