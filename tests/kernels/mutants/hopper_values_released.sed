# kernels/cuda/attention_hopper.cu cuda_attention_hopper_bf16 race
s|^        dev::wgmma_wait<0>(out, p);|        f.values->release(i - 1); dev::wgmma_wait<0>(out, p);|
s|^        f.values->release(i - 1);$||
