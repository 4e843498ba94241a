# kernels/cuda/layernorm.cu cuda_layernorm_backward_bf16 race
s|dev::block_sync(); // every sum has been read before the next part.s overwrite it||
