# kernels/cuda/layernorm.cu cuda_large_layernorm 0
s|size_t row = (size_t)blockIdx.x \* warps + warp;|int row = (int)(blockIdx.x * warps + warp);|
