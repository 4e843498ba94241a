# kernels/cuda/optim.cu cuda_grad_norm 0
s|if (i + k \* stride < whole) load_floats|load_floats|
