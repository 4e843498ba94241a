# kernels/cuda/embed_sort.cu cuda_embed_sort 0
s|bits_set(same \& ((1u << lane) - 1))|bits_set(same \& ~((2u << lane) - 1))|
