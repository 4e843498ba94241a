# kernels/cuda/attention_naive.cu cuda_heads_f16 0
s#place / a.length \* a.heads + h#place / a.length + h#
