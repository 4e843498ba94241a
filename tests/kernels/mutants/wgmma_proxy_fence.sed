# tests/kernels/cuda_gemm.cu wrapper_wgmma race
s|^    fence_proxy_async();||
