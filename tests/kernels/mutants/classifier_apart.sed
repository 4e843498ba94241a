# kernels/cuda/cross_entropy.cu cuda_cross_entropy_bf16 0
s|T \*out = dlogits + row|T *out = (T *)logits + row|
