# kernels/cuda/cross_entropy.cu cuda_cross_entropy_f32 0
s|c < ld; c += THREADS|c < V_; c += THREADS|
