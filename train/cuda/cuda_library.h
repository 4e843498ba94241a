/* cuda_library.h: the interface of libsgt-cuda.so, which exports one symbol, `sgt_cuda`. device.h
 * finds and loads the library; cuda_library.c defines the symbol. The library has its own copy of
 * the code that it needs from loader/base, kernels and train. Only the arguments and results of
 * these functions pass between the library and the program.
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
/* increase this number when the meaning of this struct, or of a struct that it passes, changes */
#define SGT_CUDA_INTERFACE 6

/* ---- timings of separate parts, for sgt-bench ---- */

typedef struct sgt_cuda_attention_times {
    float forward_ms, backward_ms; /* milliseconds per pass of one layer, the mean of ten runs */
    double peak_flops;             /* measured speed of a large matrix product; 0: not measured */
    /* for example "sm_90, our attention" and "CUDA 13.0, cuBLASLt 13.1.0" */
    char level[64], library[96];
} sgt_cuda_attention_times;

/* Time attention in a backend that is opened with these options; o->attention names the
 * implementation. A model of one layer is enough. If that implementation cannot be used, returns
 * SGT_EUNSUPPORTED with the reason. */
int sgt_cuda_bench_attention(sgt_cuda_attention_times *t, const sgt_backend_options *o,
                             sgt_error *err);

typedef struct sgt_cuda_library {
    /* SGT_CUDA_INTERFACE. This field and the next two must be equal in the program and the
     * library. */
    uint32_t interface;
    uint32_t backend, options; /* sizeof(sgt_backend), sizeof(sgt_backend_options) */
    char version[16];          /* SGT_VERSION, for the message about a mismatch */

    /* Describe device 0 in *d. If it cannot be used, fail with SGT_EUNSUPPORTED and a message of
     * sgt_cuda_device_open. */
    int (*usable)(sgt_cuda_device *d, sgt_error *err);

    /* Set folders to search for NVIDIA's libraries in addition to the system's own (see
     * sgt_library_search). */
    void (*search)(const char *folders);

    int (*open)(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);

    /* Compute the memory that open would allocate, by kind and in total, without a device. */
    int (*estimate)(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                    size_t *count, uint64_t *bytes, sgt_error *err);

    /* Return the numbers of launches, waits and copies since the library was loaded. */
    sgt_cuda_counts (*count)(void);

    const sgt_cuda_checks *checks; /* functions of the self-check; NULL: there is no self-check */

    /* Calls for benchmarks: matrix products, CUPTI's counters, and the timing of attention. */
    const sgt_cuda_gemm_calls *gemm;
    const sgt_cupti_calls *cupti;
    int (*attention)(sgt_cuda_attention_times *t, const sgt_backend_options *o, sgt_error *err);
} sgt_cuda_library;

#endif
