# kernels/cuda/cross_entropy.cu cuda_cross_entropy_bf16 0
s|float \*shared = (float \*)dev::dyn_smem();|DEV_SHARED(float, shared, 2 * WARPS);|
