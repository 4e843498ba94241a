# kernels/cuda/cross_entropy_bulk.cu cuda_cross_entropy_bulk_bf16 0 1 2 3
s|if (stage == 0) parity ^= 1;|parity ^= 1;|
