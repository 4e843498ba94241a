# kernels/cuda/attention.cuh cuda_attention_f16 0
s|if (first + g < length)|if (first + g <= length)|
