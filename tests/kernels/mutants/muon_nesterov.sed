# kernels/cuda/muon.cu cuda_muon_momentum 0
s|grad\[j\] = part + kept \* moment\[j\];|grad[j] = moment[j];|
