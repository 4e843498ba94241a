# kernels/cuda/optim.cu cuda_grad_norm 0
s|c->squares += total;|c->squares = total;|
