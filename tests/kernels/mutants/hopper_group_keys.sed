# kernels/cuda/attention_hopper_backward.cu cuda_attention_hopper_backward_bf16 0
s|first + row + MINE < end ?|first + row < end ?|
