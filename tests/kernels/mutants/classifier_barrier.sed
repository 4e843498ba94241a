# kernels/cuda/softmax.cuh cuda_cross_entropy_bf16 race
s|dev::block_sync(); // with the reading below||
