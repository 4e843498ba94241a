# kernels/cuda/attention.cuh cuda_large_attention 0
s|plain = b \* a.length \* width + h \* a.D;|plain = (uint32_t)(b * a.length * width + h * a.D);|
