# kernels/cuda/embed_sort.cu cuda_embed_sort 0
s|1 << bits) bits|1 << 40) bits|
