# kernels/cuda/layernorm.cu cuda_layernorm_backward_bf16 race
s|dev::block_sync(); // and read, before .*||
