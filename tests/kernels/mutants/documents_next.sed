# kernels/cuda/data.cu cuda_place_documents 0
s|starts\[row + back + 1\] == back + 1|starts[row + back + 1] == back|
