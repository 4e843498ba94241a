# kernels/cuda/layernorm_rows.cu cuda_layernorm_rows_f16 0
s|ld16(a.dout + at + c) : dev::Vec16{};|ld16(a.dout + at + c) : dev::ld16(a.dout + at);|
