# kernels/cuda/attention.cu cuda_attention_bf16 0 1 2
s|cp_async_wait<1>()|cp_async_wait<2>()|
