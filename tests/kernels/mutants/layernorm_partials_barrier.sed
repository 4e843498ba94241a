# kernels/cuda/layernorm.cu cuda_layernorm_backward_bf16 race
s|dev::block_sync(); // with the first group.s reading||
