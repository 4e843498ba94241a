# kernels/cuda/dropout.cuh cuda_dropout_f32 0
s|(place.ranks - 1)|place.ranks|
