/* cuda_bench.h: parts of the CUDA backend timed by themselves; what libsgt-cuda.so gives to
 * sgt-bench for it. */
#ifndef SGT_CUDA_BENCH_H
#define SGT_CUDA_BENCH_H

#include "backend.h"

typedef struct sgt_cuda_attention_times {
    float forward_ms, backward_ms; /* of one layer, the mean of ten */
    double peak_flops;             /* of a large product in that precision; 0: not measured */
    char level[64], library[96];   /* "sm_90, our attention"; "CUDA 13.0, cuBLASLt 13.1.0" */
} sgt_cuda_attention_times;

/* Attention of a backend with these options, which names the way (o->attention). A model of one
 * layer is enough. SGT_EUNSUPPORTED says why that way cannot serve. */
int sgt_cuda_bench_attention(sgt_cuda_attention_times *t, const sgt_backend_options *o,
                             sgt_error *err);

#endif
