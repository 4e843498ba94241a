# kernels/cuda/attention_hopper.cu cuda_attention_hopper_bf16 race
s|^        dev::wgmma_wait<1>(s);|        f.keys->release(i); dev::wgmma_wait<1>(s);|
s|^        f.keys->release(i);$||
