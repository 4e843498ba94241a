# kernels/cuda/attention_backward.cu cuda_attention_backward_f32 0
s|stats\[Stats<T, DP>::DELTA\] =|stats[Stats<T, DP>::DELTA + 1] =|
