# kernels/cuda/attention_hopper.cu cuda_attention_hopper_bf16 0
s|^        f.values->wait_full(i - 1);||
