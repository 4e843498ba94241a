# kernels/cuda/attention.cuh cuda_attention_f32 0
s|int pass = PASSES<T> - 1;|int pass = PASSES<T> / 2;|
