# kernels/cuda/attention_backward.cu cuda_attention_dropout_backward_bf16 0
s|^    if constexpr (DROP) drop_elements(dp\[0\], tile);||
