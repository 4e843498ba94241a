# kernels/cuda/attention_hopper.cuh cuda_attention_hopper_bf16 0
s|(i / STAGES - 1) % 2);|i / STAGES % 2);|
