# kernels/cuda/muon.cu cuda_muon_update_f16 0
s|if (u.copy) store(u.copy + i, p);|if (u.copy) store(u.copy + from, p);|
