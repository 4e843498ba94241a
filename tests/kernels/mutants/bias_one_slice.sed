# kernels/cuda/bias.cu cuda_bias_backward_f32 0
s|gridDim.y == 1 ? \*to + total|gridDim.y == 1 ? total|
