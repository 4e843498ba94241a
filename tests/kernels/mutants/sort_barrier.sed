# kernels/cuda/embed_sort.cu cuda_embed_sort race
s|dev::block_sync(); // every warp has counted||
