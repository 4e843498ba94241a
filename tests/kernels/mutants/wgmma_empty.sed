# tests/kernels/cuda_gemm.cu pipeline_wgmma 0 1 2 3
s|if (i >= STAGES) mbar_wait(.*||
