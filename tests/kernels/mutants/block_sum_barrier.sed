# kernels/cuda/elements.cuh cuda_grad_norm race
s|dev::block_sync(); // every warp has stored its sum||
