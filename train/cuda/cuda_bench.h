/* cuda_bench.h: timings of separate parts of the CUDA backend, which libsgt-cuda.so gives to
 * sgt-bench. */
#ifndef SGT_CUDA_BENCH_H
#define SGT_CUDA_BENCH_H

#include "train/backend.h"

typedef struct sgt_cuda_attention_times {
    float forward_ms, backward_ms; /* times of one layer, the mean of ten */
    double peak_flops; /* measured speed of a large product in that precision; 0: not measured */
    /* for example "sm_90, our attention" and "CUDA 13.0, cuBLASLt 13.1.0" */
    char level[64], library[96];
} sgt_cuda_attention_times;

/* Time attention in a backend opened with these options; o->attention names the implementation. A
 * model of one layer is enough. SGT_EUNSUPPORTED says why that implementation cannot be used. */
int sgt_cuda_bench_attention(sgt_cuda_attention_times *t, const sgt_backend_options *o,
                             sgt_error *err);

#endif
