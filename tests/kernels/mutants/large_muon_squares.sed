# kernels/cuda/muon.cu cuda_large_muon 0
s|u += blockIdx.y \* l.stride;|u += (unsigned)(blockIdx.y * l.stride);|
