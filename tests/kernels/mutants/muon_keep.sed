# kernels/cuda/muon.cu cuda_muon_update_bf16 0
s|if (!u.keep) store_floats|store_floats|
