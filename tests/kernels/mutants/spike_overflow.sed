# kernels/cuda/optim.cu cuda_spikes 0
s/threadIdx.x > 0 || c->found_inf ||/threadIdx.x > 0 ||/
