# kernels/cuda/optim.cu cuda_adamw_f32 0
s/u.control->found_inf | u.control->spike;/u.control->found_inf;/
