# kernels/cuda/attention_hopper.cuh cuda_attention_hopper_dropout_backward_bf16 0 1 2 3 4
s|^        dev::warp_sync(); // every lane has seen it full.*||
