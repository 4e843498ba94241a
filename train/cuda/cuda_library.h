/* cuda_library.h: what libsgt-cuda.so gives to a program: one symbol, `sgt_cuda`. device.h finds
 * and loads it; cuda_library.c is its only definition. The library holds its own copy of what it
 * needs of loader/base, kernels and train: nothing but what these functions take and return passes
 * between it and the program.
 *
 *     const sgt_cuda_library *lib;
 *     sgt_cuda_device d;
 *     if (sgt_device_open(&lib, &err) < 0 || lib->usable(&d, &err) < 0) ...;     // one line: what is missing
 *     lib->open(&backend, &options, &err); */
#ifndef SGT_CUDA_LIBRARY_H
#define SGT_CUDA_LIBRARY_H

#include "backend.h"
#include "cuda/cupti.h"
#include "cuda/gemm.h"
#include "cuda/runtime.h"
#include "cuda_bench.h"
#include "self_check.h"

#define SGT_CUDA_LIBRARY_SYMBOL "sgt_cuda"
/* one more whenever this struct or one that passes changes its meaning */
#define SGT_CUDA_INTERFACE 3

typedef struct sgt_cuda_library {
    /* SGT_CUDA_INTERFACE; with the next two, what a program and its library share */
    uint32_t interface;
    uint32_t backend, options; /* sizeof(sgt_backend), sizeof(sgt_backend_options) */
    char version[16];          /* SGT_VERSION, for the message where they differ */

    /* Whether device 0 can be used, and what it is: SGT_EUNSUPPORTED, with the lines of
     * sgt_cuda_device_open. */
    int (*usable)(sgt_cuda_device *d, sgt_error *err);

    /* Where NVIDIA's libraries are looked for beside the system's places: sgt_library_search. */
    void (*search)(const char *folders);

    int (*open)(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);

    /* What open would hold, by kind and in all, without a device. */
    int (*estimate)(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                    size_t *count, uint64_t *bytes, sgt_error *err);

    sgt_cuda_counts (*count)(void); /* launches, waits and copies since the library was loaded */

    const sgt_cuda_checks *checks; /* what the self-check tries; NULL: nothing */

    /* For benchmarks: products by themselves, what CUPTI counts, attention by itself. */
    const sgt_cuda_gemm_calls *gemm;
    const sgt_cupti_calls *cupti;
    int (*attention)(sgt_cuda_attention_times *t, const sgt_backend_options *o, sgt_error *err);
} sgt_cuda_library;

#endif
