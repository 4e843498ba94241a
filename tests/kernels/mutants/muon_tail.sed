# kernels/cuda/muon.cu cuda_muon_normalize_bf16 0
s|if (whole \* 4 + at < l.n) total|if (whole * 4 + at < l.n \&\& at > 0) total|
