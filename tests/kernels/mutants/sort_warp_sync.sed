# kernels/cuda/embed_sort.cu cuda_embed_sort race
s|dev::warp_sync(); // all have read before one writes||
