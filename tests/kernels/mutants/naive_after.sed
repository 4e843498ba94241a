# kernels/cuda/attention_naive.cu cuda_causal_softmax_f32 0
s|dp\[i\] = c + i <= last \&\& c + i >= from ? dp|dp[i] = c + i >= from ? dp|
