# tests/kernels/cuda_gemm.cu pipeline_wgmma 0
s|mbar_wait(full + stage, i / STAGES % 2);||
