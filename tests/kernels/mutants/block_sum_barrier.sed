# kernels/cuda/elements.cuh cuda_grad_norm race
s|dev::block_sync(); // with the readers below||
