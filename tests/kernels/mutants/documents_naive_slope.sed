# kernels/cuda/attention_naive.cu cuda_causal_softmax_f16 0
s|\&\& c + i >= from ? dp|? dp|
