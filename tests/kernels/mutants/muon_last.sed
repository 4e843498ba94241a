# kernels/cuda/muon.cu cuda_muon_update_f16 0
s/else if (rest < u.l.n) step_at<1>/else if (rest + 1 < u.l.n) step_at<1>/
