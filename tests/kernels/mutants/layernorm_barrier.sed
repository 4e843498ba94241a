# kernels/cuda/layernorm.cu cuda_layernorm_backward_f32 race
s|dev::block_sync(); // every warp.s sums are complete||
