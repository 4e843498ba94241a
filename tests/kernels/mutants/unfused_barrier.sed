# kernels/cuda/softmax.cuh cuda_unfused_cross_entropy_f16 race
s|dev::block_sync(); // with the reading below||
