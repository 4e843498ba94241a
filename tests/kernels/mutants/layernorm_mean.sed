# kernels/cuda/layernorm.cu cuda_layernorm_backward_f32 0
s|mean_gx = dev::warp_sum(sum_gx)|mean_gx = sum_gx * 32|
