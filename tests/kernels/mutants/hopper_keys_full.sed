# kernels/cuda/attention_hopper.cu cuda_attention_hopper_bf16 0
s|^        f.keys->wait_full(i);||
