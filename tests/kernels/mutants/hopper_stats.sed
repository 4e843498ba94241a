# kernels/cuda/attention_hopper_backward.cu cuda_attention_hopper_backward_bf16 race
s|^        dev::warp_sync(); // every lane.s numbers.*||
