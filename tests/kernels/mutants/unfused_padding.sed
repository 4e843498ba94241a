# kernels/cuda/unfused.cu cuda_unfused_cross_entropy_f32 0
s|c + i < columns ? exp_fast|c + i <= columns ? exp_fast|
