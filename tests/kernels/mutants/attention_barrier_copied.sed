# kernels/cuda/attention.cu cuda_attention_bf16 race
s|dev::block_sync(); // every thread.s copies of this tile.*||
