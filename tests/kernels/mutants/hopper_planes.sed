# kernels/cuda/attention_hopper.cuh cuda_attention_hopper_apart 0
s|dev::tensor_map(map, base, a.B, a.T,|dev::tensor_map(map, base, a.B, a.B * a.T,|
