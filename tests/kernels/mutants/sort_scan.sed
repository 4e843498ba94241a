# kernels/cuda/embed_sort.cu cuda_embed_sort 0
s|if (lane >= step) upto|if (lane > step) upto|
