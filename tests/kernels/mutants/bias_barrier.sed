# kernels/cuda/bias.cu cuda_bias_backward_f16 race
s|dev::block_sync(); // with the first warp.s reading||
