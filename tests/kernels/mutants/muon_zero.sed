# kernels/cuda/muon.cu cuda_muon_normalize_f32 0
s|fmax(sqrt(squares), SGT_MUON_EPS)|sqrt(squares)|
