# kernels/cuda/columns.cu cuda_layernorm_backward_bf16 race
s|dev::block_sync(); // every group has stored its sums||
