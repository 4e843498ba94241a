# kernels/cuda/muon.cu cuda_muon_update_f16 0
s|from = blockIdx.y \* u.l.stride_x + i|from = blockIdx.y * u.l.stride + i|
