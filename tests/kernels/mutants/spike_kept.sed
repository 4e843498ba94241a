# kernels/cuda/optim.cu cuda_adamw_f32 0
s/bool skip = u.control->found_inf || u.control->spike;/bool skip = u.control->found_inf;/
