# kernels/cuda/attention_naive.cu cuda_causal_softmax_bf16 0
s|x\[i\] = c + i <= last \&\& c + i >= from ? exp_fast|x[i] = c + i <= last + 1 \&\& c + i >= from ? exp_fast|
