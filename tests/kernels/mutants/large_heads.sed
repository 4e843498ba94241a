# kernels/cuda/attention.cuh cuda_large_attention 0
s|packed = b \* a.length \* packed_ld + h \* a.D;|packed = (uint32_t)(b * a.length * packed_ld + h * a.D);|
