/* cuda_library.h: the interface of libsgt-cuda.so, which exports only the symbol `sgt_cuda`.
 * device.h finds and loads the library, and cuda_library.c defines the symbol. The library contains
 * its own copies of functions and static variables from loader/base, kernels and train. Therefore
 * the library and the program share no data except the arguments and results of the functions
 * declared here.
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
/* version of this interface; increase it after any change to sgt_cuda_library, or to a struct that
 * is passed to its functions */
#define SGT_CUDA_INTERFACE 9

/* ---- timing attention ---- */

typedef struct sgt_cuda_attention_times {
    /* mean time of a layer's forward pass and of its backward pass, in milliseconds, over ten
     * runs */
    float forward_ms, backward_ms;
    /* measured speed of a large matrix product in operations per second; 0 if not measured */
    double peak_flops;
    /* level: names of the kernels, for example "sm_90, our attention"; library: name of the matrix
     * library, for example "CUDA 13.0, cuBLASLt 13.1.0" */
    char level[96], library[96];
} sgt_cuda_attention_times;

/* Open a backend with the options *o, and time the attention implementation that o->attention
 * names. A model with one layer is sufficient. `init` must be the function sgt_init_parameters,
 * which this library does not contain because it needs OpenMP. If the implementation cannot be
 * used, return SGT_EUNSUPPORTED with the reason. */
typedef int sgt_cuda_attention_bench(sgt_cuda_attention_times *t, const sgt_backend_options *o,
                                     sgt_init *init, sgt_error *err);

typedef struct sgt_cuda_library {
    /* value of SGT_CUDA_INTERFACE with which the library was built. A program rejects the library
     * if `interface`, `backend` or `options` differs from the program's own value. */
    uint32_t interface;
    /* sizes of sgt_backend and sgt_backend_options, in bytes, in the library */
    uint32_t backend, options;
    /* SGT_VERSION of the library, for the message if a program rejects the library */
    char version[16];

    /* Set *d to the properties of CUDA device 0. If the device cannot be used, return
     * SGT_EUNSUPPORTED with the message of sgt_cuda_device_open (see runtime.h). */
    int (*usable)(sgt_cuda_device *d, sgt_error *err);

    /* Set further folders in which to search for NVIDIA's libraries, besides the system's library
     * folders (see sgt_library_search). */
    void (*search)(const char *folders);

    int (*open)(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);

    /* Compute how many bytes of memory `open` would allocate, by kind and in total. This needs no
     * device. */
    int (*estimate)(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                    size_t *count, uint64_t *bytes, sgt_error *err);

    /* Return the numbers of kernel launches, waits and copies since the library was loaded. */
    sgt_cuda_counts (*count)(void);

    /* functions of the self-check; NULL if the library has no self-check */
    const sgt_cuda_checks *checks;

    /* functions for benchmarks: those of gemm.h and cupti.h, and a function that times attention */
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
