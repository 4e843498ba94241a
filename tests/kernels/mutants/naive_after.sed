# kernels/cuda/attention_naive.cu cuda_causal_softmax_f32 0
s|dp\[i\] = c + i <= last ? dp\[i\] \* factor\[i\] : 0|dp[i] *= factor[i]|
