# tests/kernels/cuda_gemm.cu pipeline_wgmma 0
s|mbar_arrive_expect(full + stage, (64 + N) \* 128)|mbar_arrive_expect(full + stage, 64 * 128)|
