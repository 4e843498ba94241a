# kernels/cuda/optim.cu cuda_spikes 0
s/if (c->found_inf || c->spike) c->skipped++;/if (c->found_inf) c->skipped++;/
