/* cupti.h: what the GPU did, by CUPTI: every kernel, copy and fill with its time, the host's calls
 * that started them, and which layer they belong to. For traces, and for counting kernels as the
 * device sees them.
 *
 *     sgt_cupti *p;
 *     if (sgt_cupti_open(&p, &err) < 0) ...;              // before any graph is captured
 *     sgt_cupti_push(p, "h.3 forward");                   // p may be NULL: then this is for Nsight alone
 *     kernels...;
 *     sgt_cupti_pop(p);
 *     if (sgt_cupti_begin(p, SGT_CUPTI_ALL, &err) < 0) ...;
 *     steps...; wait for the device;
 *     if (sgt_cupti_end(p, show, ctx, &counts, &err) < 0) ...;
 *     sgt_cupti_close(p);
 *
 * Ranges reach kernels in two ways. A kernel launched in a range is found by CUPTI's external
 * correlation. One that a graph launches later is found by its node, which was created while the
 * range was open: that is why open comes before capturing. Both work without NVTX. Ranges of other
 * libraries (NCCL's) come as NVTX markers, which CUPTI sees only where the user set
 * NVTX_INJECTION64_PATH to libcupti.so's path before the program began.
 *
 * CUPTI is one per process, and so is this: a second open is refused, as is one under Nsight. All
 * calls come from the thread that uses the device. Times are nanoseconds of CLOCK_MONOTONIC, for
 * CUPTI takes its times from a clock that it is given. Not yet run on a GPU. */
#ifndef SGT_CUPTI_H
#define SGT_CUPTI_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgt_cupti sgt_cupti;

/* Loads the library (SGT_EUNSUPPORTED says what is missing). */
int sgt_cupti_open(sgt_cupti **out, sgt_error *err);
void sgt_cupti_close(sgt_cupti *p); /* NULL is fine */

/* The range that kernels launched from here on belong to, until its pop; they nest, and the
 * innermost counts. */
void sgt_cupti_push(sgt_cupti *p, const char *name);
void sgt_cupti_pop(sgt_cupti *p);

typedef enum sgt_cupti_what {
    SGT_CUPTI_COUNT, /* kernels, copies, fills: for counting */
    SGT_CUPTI_ALL    /* the host's calls, ranges and markers too */
} sgt_cupti_what;
int sgt_cupti_begin(sgt_cupti *p, sgt_cupti_what what, sgt_error *err);

typedef struct sgt_cupti_arg {
    const char *key; /* NULL: none */
    uint64_t value;
} sgt_cupti_arg;
#define SGT_CUPTI_ARGS 4

typedef struct sgt_cupti_span {
    const char *name; /* "layernorm", "copy to device", "cudaGraphLaunch", "h.3 forward" */
    /* "kernel", "copy", "fill", "call", "wait" (a call that waits for the device), "range",
     * "marker" */
    const char *category;
    /* "GPU 0, stream 7", "GPU 0, stream 7, by range", "CUDA calls, thread 1", ... */
    const char *track;
    int on_device;
    uint64_t start, end;
    uint64_t flow;   /* equal in a call and in what it started; 0: none */
    int starts_flow; /* this is the call */
    sgt_cupti_arg args[SGT_CUPTI_ARGS];
} sgt_cupti_span;

typedef struct sgt_cupti_counts {
    uint64_t kernels, copies, fills;
    uint64_t calls, waits; /* of the host; waits are calls too. With SGT_CUPTI_ALL alone */
    uint64_t lost;         /* records that CUPTI had no room for, or gave without times */
} sgt_cupti_counts;

/* What happened since begin, to `show` (NULL: nowhere), a span a call, from this thread, in no
 * order; texts live for that call. The device must have finished. counts may be NULL. */
int sgt_cupti_end(sgt_cupti *p, void (*show)(void *ctx, const sgt_cupti_span *s), void *ctx,
                  sgt_cupti_counts *counts, sgt_error *err);

/* The calls above for a program that loads libsgt-cuda.so (cuda_library.h). */
typedef struct sgt_cupti_calls {
    int (*open)(sgt_cupti **out, sgt_error *err);
    void (*close)(sgt_cupti *p);
    int (*begin)(sgt_cupti *p, sgt_cupti_what what, sgt_error *err);
    int (*end)(sgt_cupti *p, void (*show)(void *ctx, const sgt_cupti_span *s), void *ctx,
               sgt_cupti_counts *counts, sgt_error *err);
} sgt_cupti_calls;

/* A kernel's name as a person would write it: the qualified name of a mangled one without its
 * template's arguments and its anonymous namespaces ("cutlass::device_kernel"), any other as it is.
 * Returns out. */
char *sgt_cupti_short_name(char *out, size_t size, const char *name);

#ifdef __cplusplus
}
#endif
#endif
