# kernels/cuda/embed.cu cuda_embed_sort race
s|dev::block_sync(); // every thread has counted||
