# kernels/cuda/layernorm_rows.cu cuda_layernorm_rows_bf16 race
s|dev::block_sync(); // and read, before .*||
