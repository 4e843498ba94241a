# tests/kernels/cuda_gemm.cu pipeline_wgmma 0
s|desc_rows(stage_a<T, N>(i)) + k \* DESC_K16|desc_rows(stage_a<T, N>(i)) + k * 2 * DESC_K16|
