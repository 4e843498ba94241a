# kernels/cuda/attention_hopper.cu cuda_attention_hopper_bf16 0
s|^        dev::turn_pass(1 + .*||
