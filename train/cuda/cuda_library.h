/* cuda_library.h: the interface of libsgt-cuda.so: one symbol, `sgt_cuda`. device.h finds and loads
 * the library; cuda_library.c defines the symbol. The library has its own copy of the code it needs
 * from loader/base, kernels and train. Only the arguments and results of these functions pass
 * between the library and the program.
 *
 *     const sgt_cuda_library *lib;
 *     sgt_cuda_device d;
 *     if (sgt_device_open(&lib, &err) < 0 || lib->usable(&d, &err) < 0)
 *         ...;                        // err is one line that names what is missing
 *     lib->open(&backend, &options, &err); */
#ifndef SGT_CUDA_LIBRARY_H
#define SGT_CUDA_LIBRARY_H

#include "train/backend.h"
#include "kernels/cuda/cupti.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/runtime.h"
#include "train/cuda/self_check.h"

#define SGT_CUDA_LIBRARY_SYMBOL "sgt_cuda"
/* number to increase when the meaning of this struct, or of one that it passes, changes */
#define SGT_CUDA_INTERFACE 6

/* ---- timings of separate parts, for sgt-bench ---- */

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

typedef struct sgt_cuda_library {
    /* SGT_CUDA_INTERFACE. This and the next two fields must be equal in the program and the
     * library. */
    uint32_t interface;
    uint32_t backend, options; /* sizeof(sgt_backend), sizeof(sgt_backend_options) */
    char version[16];          /* SGT_VERSION, for the message about a mismatch */

    /* Describe device 0 in *d. Fail with SGT_EUNSUPPORTED and a message of sgt_cuda_device_open if
     * it cannot be used. */
    int (*usable)(sgt_cuda_device *d, sgt_error *err);

    /* Set folders to search for NVIDIA's libraries besides the system's own (see
     * sgt_library_search). */
    void (*search)(const char *folders);

    int (*open)(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);

    /* Compute the memory that open would allocate, by kind and in total, without a device. */
    int (*estimate)(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                    size_t *count, uint64_t *bytes, sgt_error *err);

    /* Return how many launches, waits and copies there were since the library was loaded. */
    sgt_cuda_counts (*count)(void);

    const sgt_cuda_checks *checks; /* functions of the self-check; NULL: there is none */

    /* Calls for benchmarks: matrix products, CUPTI's counters, and the timing of attention. */
    const sgt_cuda_gemm_calls *gemm;
    const sgt_cupti_calls *cupti;
    int (*attention)(sgt_cuda_attention_times *t, const sgt_backend_options *o, sgt_error *err);
} sgt_cuda_library;

#endif
