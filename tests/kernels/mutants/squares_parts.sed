# kernels/cuda/optim.cu cuda_grad_squares 0
s|c->squares += total;|c->squares = total;|
