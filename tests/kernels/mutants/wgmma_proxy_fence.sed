# tests/kernels/cuda_wrappers.cu wrapper_wgmma race
s|^    fence_proxy_async();||
