# kernels/cuda/gelu.cu cuda_large_elements 0
s|size_t i = (size_t)blockIdx.x \* THREADS + threadIdx.x, whole|unsigned i = blockIdx.x * THREADS + threadIdx.x, whole|
