# kernels/cuda/optim.cu cuda_muon_normalize_f32 0
s|partial\[blockIdx.y \* gridDim.x + blockIdx.x\]|partial[blockIdx.y + blockIdx.x]|
