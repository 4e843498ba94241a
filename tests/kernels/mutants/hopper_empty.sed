# kernels/cuda/attention_hopper.cuh cuda_attention_hopper_bf16 0 1 2 3
s|^        if (i >= STAGES) dev::mbar_wait(.*||
