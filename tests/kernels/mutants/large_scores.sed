# kernels/cuda/attention_naive.cu cuda_large_scores 0
s|T \*row = a.x + r \* a.length;|T *row = a.x + (uint32_t)(r * a.length);|
