# kernels/cuda/gelu.cu cuda_gelu_f32 0
s|whole \* V + (i - whole) < n|whole * V + (i - whole) <= n|
