# kernels/cuda/optim.cu cuda_adamw_bf16 0
s|if (!u.keep) store_floats|store_floats|
