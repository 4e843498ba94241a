# kernels/cuda/muon.cu cuda_muon_momentum 0
s/if (c->found_inf || c->spike) return;/if (c->found_inf) return;/
