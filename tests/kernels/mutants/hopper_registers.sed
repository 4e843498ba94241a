# kernels/cuda/attention_hopper.cuh cuda_attention_hopper_bf16 0
s|CONSUMER_REGISTERS = 240|CONSUMER_REGISTERS = 248|
