/* cupti.h: records GPU activity with CUPTI: the name and the times of every kernel, copy and fill.
 * For work that a CUDA graph launches, it also records the range: a named part of a step, such as
 * the forward pass of a layer. Traces and the table of a step's kernels use these records.
 *
 *     sgt_cupti *p;
 *     if (sgt_cupti_open(&p, &err) < 0) ...;              // before any graph is captured
 *     sgt_cupti_push("h.3 forward");
 *     ...                                                 // launch kernels
 *     sgt_cupti_push_label("qkv forward");
 *     sgt_cupti_work(2 * m * n * k, 0);
 *     ...                                                 // launch a library's matrix product
 *     sgt_cupti_pop();
 *     sgt_cupti_pop();
 *     if (sgt_cupti_begin(p, &err) < 0) ...;
 *     ...                                                 // run steps, and wait for the device
 *     if (sgt_cupti_end(p, show, ctx, &err) < 0) ...;
 *     sgt_cupti_close(p);
 *
 * The range of a kernel in a graph is found through its graph node, which was created while the
 * range was open. Therefore sgt_cupti_open must come before capturing. Kernels outside graphs have
 * no range.
 *
 * Only one client in a process can use CUPTI, so sgt_cupti_open fails if an sgt_cupti is already
 * open, or if the program runs under Nsight. All calls come from the thread that uses the device.
 * Times are nanoseconds of CLOCK_MONOTONIC, which CUPTI is told to use as its clock. */
#ifndef SGT_CUPTI_H
#define SGT_CUPTI_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgt_cupti sgt_cupti;

/* Load CUPTI and subscribe to it. If CUPTI cannot be used, return SGT_EUNSUPPORTED, with the reason
 * in *err. */
int sgt_cupti_open(sgt_cupti **out, sgt_error *err);
void sgt_cupti_close(sgt_cupti *p); /* p may be NULL */

/* Begin a range (a named part of a step). All kernels that are launched before the matching
 * sgt_cupti_pop belong to this range, except those in a nested range. If no sgt_cupti is open, do
 * nothing. */
void sgt_cupti_push(const char *name);
void sgt_cupti_pop(void);
/* Begin a label: text that tells what the kernels of a library compute, because the names of those
 * kernels do not tell it. sgt_cupti_pop ends the label. The kernels still belong to the enclosing
 * range. `name` is not copied and must stay valid. */
void sgt_cupti_push_label(const char *name);
/* Declare the cost of the work that is launched next: its number of floating-point operations, and
 * its memory traffic in bytes. 0 means unknown. If the work consists of several kernels, its entire
 * cost is attributed to the first kernel. */
void sgt_cupti_work(double flops, double bytes);

typedef struct sgt_cupti_kernel {
    const char *name; /* name of the work, for example "layernorm", "copy to device" or "fill" */
    const char *category;      /* kind of work: "kernel", "copy" or "fill"; a static string */
    const char *range, *label; /* as pushed; NULL: none */
    uint32_t device, stream;
    uint64_t start, end;
    /* cost of the work as declared with sgt_cupti_work; 0: unknown. For a copy or a fill, `bytes`
     * is the number of bytes copied or filled. */
    double flops, bytes;
} sgt_cupti_kernel;

/* Begin a recording. */
int sgt_cupti_begin(sgt_cupti *p, sgt_error *err);

/* End the recording. All work on the device must have finished. Unless `show` is NULL, call `show`
 * for each kernel, copy and fill, sorted by device, stream and start time. The strings that `show`
 * receives are valid only during the call. If records were lost, return SGT_EIO. */
int sgt_cupti_end(sgt_cupti *p, void (*show)(void *ctx, const sgt_cupti_kernel *k), void *ctx,
                  sgt_error *err);

uint32_t sgt_cupti_version(void); /* Return CUPTI's version, or 0 if CUPTI cannot be loaded. */

/* ---- our own declarations of the part of CUPTI that cupti.c uses, so that building needs no CUDA
 * header. tests/kernels/toolkit compares these declarations with CUPTI's header. ---- */

#ifndef SGT_CUPTI_TYPES /* a test defines it, to compare the types below with CUPTI's */
typedef int sgt_cupti_result, sgt_cupti_kind, sgt_cupti_domain;
typedef uint32_t sgt_cupti_callback_id;
typedef struct sgt_cupti_record {
    int32_t kind;
} sgt_cupti_record;
typedef struct sgt_cupti_subscriber_opaque *sgt_cupti_subscriber;
typedef struct CUgraphNode_st *sgt_cupti_node;
typedef struct CUctx_st *sgt_cupti_context;
#endif

enum { /* CUptiResult */
       SGT_CUPTI_SUCCESS = 0,
       SGT_CUPTI_INSUFFICIENT_PRIVILEGES = 35,
       SGT_CUPTI_MULTIPLE_SUBSCRIBERS = 39
};
enum { /* CUpti_ActivityKind */
       SGT_CUPTI_MEMCPY = 1,
       SGT_CUPTI_MEMSET = 2,
       SGT_CUPTI_KERNEL = 10 /* CUPTI's KIND_CONCURRENT_KERNEL, which does not serialize kernels */
};
enum { SGT_CUPTI_FLUSH_FORCED = 1 }; /* CUpti_ActivityFlag for a flush */
/* values of CUpti_CallbackDomain, and the ids of the callbacks in DOMAIN_RESOURCE that we use */
enum { SGT_CUPTI_DOMAIN_RESOURCE = 3, SGT_CUPTI_NODE_CREATED = 13, SGT_CUPTI_NODE_CLONED = 20 };
/* directions of copies */
enum { SGT_CUPTI_HOST_TO_DEVICE = 1, SGT_CUPTI_DEVICE_TO_HOST = 2, SGT_CUPTI_DEVICE_TO_DEVICE = 8 };

/* Records of kernels, copies and fills. CUPTI's records have more fields. The fields here have the
 * same offsets in every CUPTI from 12.8 on. The sizes of the records differ from version to
 * version, so only CUPTI's next_record can find the next record. */
typedef struct sgt_cupti_launch { /* record of a kernel */
    int32_t kind, rest[3];
    uint64_t start, end, completed;
    uint32_t device, context, stream, grid_to_correlation[13];
    const char *name; /* mangled; CUPTI owns the string */
    uint64_t reserved_to_launch[4];
    /* id of the CUDA graph node that launched the kernel; 0: not launched by a graph */
    uint64_t node;
} sgt_cupti_launch;

typedef struct sgt_cupti_move { /* record of a copy or of a fill; a fill has no direction */
    int32_t kind;
    uint8_t direction, rest[3]; /* direction of a copy, for example SGT_CUPTI_HOST_TO_DEVICE */
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation[3];
    void *reserved;
    uint64_t node;
} sgt_cupti_move;

/* Data of a callback of DOMAIN_RESOURCE. If the callback is about a node of a graph, `descriptor`
 * points to an sgt_cupti_graph_data. */
typedef struct sgt_cupti_resource {
    sgt_cupti_context context;
    void *handle, *descriptor;
} sgt_cupti_resource;
typedef struct sgt_cupti_graph_data {
    void *graph, *original_graph;
    sgt_cupti_node node, original_node;
} sgt_cupti_graph_data;

typedef void (*sgt_cupti_callback)(void *ctx, sgt_cupti_domain domain, sgt_cupti_callback_id which,
                                   const void *data);
typedef void (*sgt_cupti_request)(uint8_t **buffer, size_t *size, size_t *most_records);
typedef void (*sgt_cupti_complete)(sgt_cupti_context context, uint32_t stream, uint8_t *buffer,
                                   size_t size, size_t valid);

typedef struct sgt_cupti_api {
    sgt_cupti_result (*version)(uint32_t *version);
    sgt_cupti_result (*result_string)(sgt_cupti_result result, const char **text);
    sgt_cupti_result (*subscribe)(sgt_cupti_subscriber *s, sgt_cupti_callback f, void *ctx);
    sgt_cupti_result (*unsubscribe)(sgt_cupti_subscriber s);
    sgt_cupti_result (*enable_callback)(uint32_t on, sgt_cupti_subscriber s,
                                        sgt_cupti_domain domain, sgt_cupti_callback_id which);
    sgt_cupti_result (*node_id)(sgt_cupti_node node, uint64_t *id);
    /* make CUPTI take all times in its records from the function `now` */
    sgt_cupti_result (*set_clock)(uint64_t (*now)(void));
    sgt_cupti_result (*set_buffers)(sgt_cupti_request request, sgt_cupti_complete complete);
    sgt_cupti_result (*enable)(sgt_cupti_kind kind);
    sgt_cupti_result (*disable)(sgt_cupti_kind kind);
    sgt_cupti_result (*flush)(uint32_t flag);
    /* set *record to the next record, or to the first record if *record is NULL */
    sgt_cupti_result (*next_record)(uint8_t *buffer, size_t valid, sgt_cupti_record **record);
    sgt_cupti_result (*dropped)(sgt_cupti_context context, uint32_t stream, size_t *records);
} sgt_cupti_api;

#ifdef __cplusplus
}
#endif
#endif
