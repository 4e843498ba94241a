# kernels/cuda/attention_hopper.cu cuda_attention_hopper_bf16 0
s|f.keys->bar(i), WIDE_TILE<D, KEYS> \* (int)sizeof(T)|f.keys->bar(i), WIDE_TILE<D, KEYS>|
