# kernels/cuda/optim.cu cuda_large_muon 0
s|g += blockIdx.y \* apart;|g += (unsigned)(blockIdx.y * apart);|
