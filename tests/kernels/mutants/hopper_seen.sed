# kernels/cuda/attention_hopper_backward.cu cuda_attention_hopper_documents_backward_bf16 0
s|sight.after_queries(first + row + MINE - 1)|sight.after_queries(first + row)|
