# kernels/cuda/columns.cu cuda_bias_backward_f32 0
s|for (int b = group; b < blocks; b += GROUPS)|for (int b = group; b < blocks - 1; b += GROUPS)|
