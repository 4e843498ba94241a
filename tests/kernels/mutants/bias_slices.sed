# kernels/cuda/bias.cu cuda_bias_backward_f32 0
s|for (int s = 0; s < slices; s++)|for (int s = 0; s < slices - 1; s++)|
