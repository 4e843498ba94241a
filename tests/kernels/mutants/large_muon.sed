# kernels/cuda/muon.cu cuda_large_muon 0
s|size_t flat = blockIdx.y \* u.l.stride + i, from|size_t flat = (unsigned)(blockIdx.y * u.l.stride + i), from|
