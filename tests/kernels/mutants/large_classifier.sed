# kernels/cuda/cross_entropy.cu cuda_large_classifier_bf16 0
s|size_t row = blockIdx.x;|int row = (int)blockIdx.x;|
