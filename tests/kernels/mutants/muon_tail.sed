# kernels/cuda/optim.cu cuda_muon_normalize_bf16 0
s|if (whole \* 4 + at < n) total|if (whole * 4 + at < n \&\& at > 0) total|
