# kernels/cuda/attention_tiled.cu cuda_attention_tiled_backward_f32 0
s|KEYS ? query < seen :|KEYS ? query <= seen :|
