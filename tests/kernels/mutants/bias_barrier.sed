# kernels/cuda/bias.cu cuda_bias_backward_f16 race
s|dev::block_sync(); // every warp has stored its sums||
