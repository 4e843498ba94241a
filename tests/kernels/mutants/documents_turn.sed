# kernels/cuda/attention.cu cuda_attention_documents_bf16 0
s|int turn = begin / KEYS % 2 \* TILE<DP, KEYS>;|int turn = 0;|
