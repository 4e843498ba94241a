# kernels/cuda/embed.cu cuda_embed_backward_f32 0
s|to < a.n && a.sorted\[to\] == id;|to < a.n;|
