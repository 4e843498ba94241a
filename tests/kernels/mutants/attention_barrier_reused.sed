# kernels/cuda/attention.cu cuda_attention_bf16 race
s|dev::block_sync(); // all have read it before.*||
