/* cuda_library.h: the interface of libsgt-cuda.so, which exports only the symbol `sgt_cuda`.
 * device.h finds and loads the library, and cuda_library.c defines the symbol. The library contains
 * its own copy of the code that it needs from loader/base, kernels and train, including its static
 * variables. The only data that library and program have in common are therefore the arguments and
 * results of these functions.
 *
 *     const sgt_cuda_library *lib;
 *     sgt_cuda_device d;
 *     if (sgt_device_open(&lib, &err) < 0 || lib->usable(&d, &err) < 0)
 *         ...;   // err is one line that names what is missing
 *     lib->open(&backend, &options, &err); */
#ifndef SGT_CUDA_LIBRARY_H
#define SGT_CUDA_LIBRARY_H

#include "train/backend.h"
#include "kernels/cuda/cupti.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/runtime.h"
#include "train/cuda/self_check.h"

#define SGT_CUDA_LIBRARY_SYMBOL "sgt_cuda"
/* version of the interface; increase it whenever this struct changes, or a struct to which its
 * functions have pointers */
#define SGT_CUDA_INTERFACE 9

/* ---- times of parts of the backend, for sgt-bench ---- */

typedef struct sgt_cuda_attention_times {
    /* mean time of one layer's forward and backward pass over ten runs, in milliseconds */
    float forward_ms, backward_ms;
    /* measured speed of a large matrix product, in operations per second; 0: not measured */
    double peak_flops;
    /* names of the kernels and the matrix library, for example "sm_90, our attention" and "CUDA
     * 13.0, cuBLASLt 13.1.0" */
    char level[64], library[96];
} sgt_cuda_attention_times;

/* Open a backend with these options, and time the attention implementation that o->attention names.
 * A model of one layer is sufficient. `init` must be sgt_init_parameters. It is an argument because
 * this library does not contain it, to be independent of OpenMP. If the implementation cannot be
 * used, return SGT_EUNSUPPORTED with the reason. */
typedef int sgt_cuda_attention_bench(sgt_cuda_attention_times *t, const sgt_backend_options *o,
                                     sgt_init *init, sgt_error *err);

typedef struct sgt_cuda_library {
    /* SGT_CUDA_INTERFACE with which the library was built. The program rejects the library unless
     * this field and the next two have the values with which the program was built. */
    uint32_t interface;
    /* sizeof(sgt_backend) and sizeof(sgt_backend_options) in the library */
    uint32_t backend, options;
    /* SGT_VERSION of the library, for the error message if the program rejects it */
    char version[16];

    /* Set *d to the properties of CUDA device 0. If the device cannot be used, return
     * SGT_EUNSUPPORTED with the message of sgt_cuda_device_open. */
    int (*usable)(sgt_cuda_device *d, sgt_error *err);

    /* Set folders in which NVIDIA's libraries are searched for, in addition to the system's library
     * folders (see sgt_library_search). */
    void (*search)(const char *folders);

    int (*open)(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);

    /* Compute how much memory `open` would allocate, by kind and in total. No device is needed. */
    int (*estimate)(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                    size_t *count, uint64_t *bytes, sgt_error *err);

    /* Return how many launches, waits and copies there were since the library was loaded. */
    sgt_cuda_counts (*count)(void);

    /* functions of the self-check; NULL: the library has no self-check */
    const sgt_cuda_checks *checks;

    /* functions for benchmarks: those of gemm.h and cupti.h, and one that times attention */
    struct {
        int (*open)(sgt_cuda_gemms **out, const sgt_cuda_gemms_options *o, sgt_error *err);
        void (*close)(sgt_cuda_gemms *g);
        const char *(*library)(const sgt_cuda_gemms *g);
        int (*plan)(const sgt_cuda_gemm **out, sgt_cuda_gemms *g, const sgt_cuda_gemm_shape *s,
                    sgt_error *err);
        float (*ms)(const sgt_cuda_gemm *p);
    } gemm;
    struct {
        int (*open)(sgt_cupti **out, sgt_error *err);
        void (*close)(sgt_cupti *p);
        int (*begin)(sgt_cupti *p, sgt_error *err);
        int (*end)(sgt_cupti *p, void (*show)(void *ctx, const sgt_cupti_kernel *k), void *ctx,
                   sgt_error *err);
    } cupti;
    sgt_cuda_attention_bench *attention;
} sgt_cuda_library;

#endif
