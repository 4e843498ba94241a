# kernels/cuda/data.cu cuda_place_documents 0
s|before = dev::shfl(at, 31)|before = dev::shfl(at, 0)|
