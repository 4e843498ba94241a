# kernels/cuda/attention_tiled.cu cuda_attention_tiled_f32 0
s/|| key + j < from$/|| key + j < from - 1/
