# kernels/cuda/muon.cu cuda_muon_update_f32 0
s|(float)(1 - lr \* u.decay)|(float)(1 - u.decay)|
