# kernels/cuda/muon.cu cuda_muon_normalize_f32 0
s/i += PARTS \* THREADS/i += THREADS/
