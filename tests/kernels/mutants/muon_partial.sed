# kernels/cuda/muon.cu cuda_muon_normalize_f16 0
s|partial\[blockIdx.y \* PARTS + threadIdx.x\]|partial[threadIdx.x]|
