/* cuda_bench.h: timings of separate parts of the CUDA backend, which sgt-bench calls through
 * libsgt-cuda.so. */
#ifndef SGT_CUDA_BENCH_H
#define SGT_CUDA_BENCH_H

#include "train/backend.h"

typedef struct sgt_cuda_attention_times {
    float forward_ms, backward_ms; /* milliseconds of one layer's passes, the mean of ten runs */
    double peak_flops; /* measured speed of a large product in this precision; 0: not measured */
    /* for example "sm_90, our attention" and "CUDA 13.0, cuBLASLt 13.1.0" */
    char level[64], library[96];
} sgt_cuda_attention_times;

/* Time attention in a backend opened with these options; o->attention names the implementation. A
 * model of one layer is enough. Returns SGT_EUNSUPPORTED, with the reason, if that implementation
 * cannot be used. */
int sgt_cuda_bench_attention(sgt_cuda_attention_times *t, const sgt_backend_options *o,
                             sgt_error *err);

#endif
