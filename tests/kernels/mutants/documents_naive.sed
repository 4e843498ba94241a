# kernels/cuda/attention_naive.cu cuda_causal_softmax_bf16 0
s|c + i >= from ? x\[i\] \* a.scale : -INFINITY|c + i >= from - 1 ? x[i] * a.scale : -INFINITY|
