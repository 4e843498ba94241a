# kernels/cuda/attention.cu cuda_attention_documents_bf16 0
s|r\[m\] = {{NONE_YET, NONE_YET}|r[m] = {{-INFINITY, -INFINITY}|
