# kernels/cuda/attention.cuh cuda_attention_f16 0
s|if (first + g + 8 < length)|if (first + g + 8 <= length)|
