# kernels/cuda/unfused.cu cuda_elementwise_f16 0
s|else if (rest < n) op|else if (rest <= n) op|
