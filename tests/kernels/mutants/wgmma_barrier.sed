# tests/kernels/cuda_wrappers.cu wrapper_wgmma race
s|block_sync(); /\* everybody.s part, fenced.*||
