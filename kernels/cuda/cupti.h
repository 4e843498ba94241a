/* cupti.h: records GPU activity with CUPTI: every kernel, copy and fill with its time, the host
 * calls that started them, and the layer that they belong to. Used for traces, and for the table of
 * a step's kernels.
 *
 *     sgt_cupti *p;
 *     if (sgt_cupti_open(&p, &err) < 0) ...;              // before any graph is captured
 *     sgt_cupti_push("h.3 forward");
 *     kernels...;
 *     sgt_cupti_push_label("qkv forward");
 *     sgt_cupti_work(2 * m * n * k, 0);
 *     a library's product...;
 *     sgt_cupti_pop();
 *     sgt_cupti_pop();
 *     if (sgt_cupti_begin(p, &err) < 0) ...;
 *     steps...; wait for the device;
 *     if (sgt_cupti_end(p, show, ctx, &counts, &err) < 0) ...;
 *     sgt_cupti_close(p);
 *
 * Ranges are assigned to kernels in two ways. A kernel launched in a range is found by CUPTI's
 * external correlation. A kernel that a graph launches later is found by its node, which was
 * created while the range was open; therefore open must come before capturing. Both work without
 * NVTX. Ranges of other libraries (NCCL's) are NVTX markers, which CUPTI sees only if the user set
 * NVTX_INJECTION64_PATH to the path of libcupti.so before the program began.
 *
 * A process has one CUPTI: a second open is refused, and so is one under Nsight. All calls come
 * from the thread that uses the device. Times are nanoseconds of CLOCK_MONOTONIC, which we give to
 * CUPTI as its clock. */
#ifndef SGT_CUPTI_H
#define SGT_CUPTI_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgt_cupti sgt_cupti;

/* Load CUPTI and subscribe to it. Returns SGT_EUNSUPPORTED, with what is missing, if it cannot be
 * used. */
int sgt_cupti_open(sgt_cupti **out, sgt_error *err);
void sgt_cupti_close(sgt_cupti *p); /* p may be NULL */

/* Begin a range: it covers the kernels launched before its sgt_cupti_pop. Ranges nest; a kernel
 * belongs to the innermost. Without an open sgt_cupti, only Nsight sees them. */
void sgt_cupti_push(const char *name);
void sgt_cupti_pop(void);
/* Begin a label, which ends with sgt_cupti_pop: it tells what a library's kernels compute. They
 * belong to the range around it. */
void sgt_cupti_push_label(const char *name);
/* Tell the floating-point operations and the bytes of memory traffic (0: unknown) of the work that
 * is launched next. If that is several kernels, the first one counts for all. Kept only for a graph
 * that captures them. */
void sgt_cupti_work(double flops, double bytes);

int sgt_cupti_begin(sgt_cupti *p, sgt_error *err);

typedef struct sgt_cupti_arg {
    const char *key; /* NULL: none */
    uint64_t value;
} sgt_cupti_arg;
#define SGT_CUPTI_ARGS 4

typedef struct sgt_cupti_span {
    const char *name; /* "layernorm", "copy to device", "cudaGraphLaunch", "h.3 forward" */
    /* "kernel", "copy", "fill", "call", "wait" (a call that waits for the device), "range" or
     * "marker" */
    const char *category;
    /* "GPU 0, stream 7", "GPU 0, stream 7, by range", "CUDA calls, thread 1", ... */
    const char *track;
    int on_device;
    uint64_t start, end;
    uint64_t flow;   /* same number for a host call and the work that it started; 0: none */
    int starts_flow; /* 1 for the host call of the flow */
    sgt_cupti_arg args[SGT_CUPTI_ARGS];
    const char *label; /* of a kernel, copy or fill (sgt_cupti_push_label); NULL: none */
    double flops,
        bytes; /* as given to sgt_cupti_work, or the bytes of a copy or fill; 0: unknown */
} sgt_cupti_span;

typedef struct sgt_cupti_counts {
    uint64_t kernels;
    uint64_t lost; /* records that CUPTI had no room for, or that had no times */
} sgt_cupti_counts;

/* End the recording that sgt_cupti_begin started, and report it: `show`, unless NULL, is called
 * once per span, from this thread, in no particular order. Its texts are valid only during the
 * call. All work of the device must have finished. counts may be NULL. */
int sgt_cupti_end(sgt_cupti *p, void (*show)(void *ctx, const sgt_cupti_span *s), void *ctx,
                  sgt_cupti_counts *counts, sgt_error *err);

/* The functions above as a table, for a program that loads libsgt-cuda.so at run time
 * (cuda_library.h). */
typedef struct sgt_cupti_calls {
    int (*open)(sgt_cupti **out, sgt_error *err);
    void (*close)(sgt_cupti *p);
    int (*begin)(sgt_cupti *p, sgt_error *err);
    int (*end)(sgt_cupti *p, void (*show)(void *ctx, const sgt_cupti_span *s), void *ctx,
               sgt_cupti_counts *counts, sgt_error *err);
} sgt_cupti_calls;

/* Shorten a kernel's name. Of a mangled name, keep the qualified name without template arguments
 * and anonymous namespaces ("cutlass::device_kernel"); copy any other name unchanged. Returns
 * out. */
char *sgt_cupti_short_name(char *out, size_t size, const char *name);

#ifdef __cplusplus
}
#endif
#endif
