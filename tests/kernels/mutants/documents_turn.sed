# kernels/cuda/attention.cu cuda_attention_documents_bf16 0
s|int turn = begin / N % 2 \* TILE_N;|int turn = 0;|
