# kernels/cuda/softmax.cuh cuda_cross_entropy_bf16 race
s|dev::block_sync(); // every warp has stored its sums||
