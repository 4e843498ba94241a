# kernels/cuda/cross_entropy.cu cuda_cross_entropy_bf16 0
s|- (c + i == target ? by : 0)|- (c + i == target + 1 ? by : 0)|
