# kernels/cuda/attention_hopper.cuh cuda_attention_hopper_bf16 0
s|trap_unless_aligned(own)|trap_unless_aligned(own + 1)|
