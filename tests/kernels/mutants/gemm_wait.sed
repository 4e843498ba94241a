# tests/kernels/cuda_gemm.cu pipeline_mma 0 1 2
s|cp_async_wait<1>(); /\* all but|cp_async_wait<2>(); /* all but|
