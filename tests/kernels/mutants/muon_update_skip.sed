# kernels/cuda/muon.cu cuda_muon_update_bf16 0
s/if (u.control->found_inf || u.control->spike) return;/if (u.control->spike) return;/
