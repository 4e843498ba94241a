# kernels/cuda/cross_entropy_bulk.cu cuda_cross_entropy_bulk_bf16 race
s|dev::block_sync(); // all have read the row, and the sums||
