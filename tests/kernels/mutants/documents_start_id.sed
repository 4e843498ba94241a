# kernels/cuda/data.cu cuda_find_documents 0
s|ids\[row + t\] == eot ? t : 0|ids[row + t] == eot ? t + 1 : 0|
