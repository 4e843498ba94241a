# tests/kernels/cuda_gemm.cu pipeline_wgmma 0 1 2 3
s|wgmma_wait<0>(sum); /\* with the producer.*|wgmma_wait<1>(sum);|
