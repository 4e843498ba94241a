/* cudnn_graph.h: a cuDNN operation graph, written down an operation a line, and the plan that runs
 * it.
 *
 *     sgt_cudnn_graph g;
 *     sgt_cudnn_graph_init(&g, api, handle, NULL, &err);
 *     sgt_cudnn_desc x = sgt_cudnn_tensor(&g, &(sgt_cudnn_place){.uid = 1, ...}), y = ...;
 *     sgt_cudnn_matmul(&g, x, w, y);
 *     sgt_cudnn_plan p;
 *     int rc = sgt_cudnn_graph_plan(&g, "a product", 0, &p);   // the first failure of all of the above
 *     ...
 *     sgt_cudnn_graph_clear(&g);                               // the plan with it
 *
 * A call after a failed one does nothing; the failure is kept in the graph and said by the plan.
 * Tensors have four dimensions. Arithmetic is float32. One thread at a time. Not yet run on a
 * GPU. */
#ifndef SGT_CUDNN_GRAPH_H
#define SGT_CUDNN_GRAPH_H

#include "cudnn.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SGT_CUDNN_OPS = 32, SGT_CUDNN_DESCS = 512 };

typedef struct sgt_cudnn_graph {
    const sgt_cudnn *api;
    sgt_cudnn_handle handle; /* NULL: `device` describes one that is not here */
    sgt_cudnn_desc device;
    sgt_cudnn_desc ops[SGT_CUDNN_OPS], descs[SGT_CUDNN_DESCS];
    int op_count, desc_count;
    int64_t last_uid; /* of tensors that exist inside the graph alone */
    int rc;
    sgt_error *err;
} sgt_cudnn_graph;

typedef enum sgt_cudnn_kind {
    SGT_CUDNN_MEMORY, /* in device memory, 16-byte aligned; the caller says where at each run */
    SGT_CUDNN_SCALAR, /* one float in host memory, read when the run is put on a stream */
    SGT_CUDNN_VIRTUAL /* inside the graph alone; uid is given to it */
} sgt_cudnn_kind;

typedef struct sgt_cudnn_place {
    int64_t uid, dim[4], stride[4]; /* strides in numbers */
    int type;                       /* SGT_CUDNN_DATA_* */
    sgt_cudnn_kind kind;
    /* SGT_CUDNN_TENSOR_REORDERING_*: numbers lie as an engine likes it; 0: as strides say */
    int reordering;
} sgt_cudnn_place;

/* json describes a device that is not here; NULL where there is a handle. */
void sgt_cudnn_graph_init(sgt_cudnn_graph *g, const sgt_cudnn *api, sgt_cudnn_handle handle,
                          const char *json, sgt_error *err);
void sgt_cudnn_graph_clear(sgt_cudnn_graph *g); /* a zeroed one is fine */

/* Descriptors live as long as the graph. */
sgt_cudnn_desc sgt_cudnn_tensor(sgt_cudnn_graph *g, const sgt_cudnn_place *p);

/* c = a b */
void sgt_cudnn_matmul(sgt_cudnn_graph *g, sgt_cudnn_desc a, sgt_cudnn_desc b, sgt_cudnn_desc c);
/* y = f(x) */
void sgt_cudnn_unary(sgt_cudnn_graph *g, int mode, sgt_cudnn_desc x, sgt_cudnn_desc y);
void sgt_cudnn_binary(sgt_cudnn_graph *g, int mode, sgt_cudnn_desc x, sgt_cudnn_desc b,
                      sgt_cudnn_desc y);
/* y = place along axis */
void sgt_cudnn_index(sgt_cudnn_graph *g, int64_t axis, sgt_cudnn_desc x, sgt_cudnn_desc y);
void sgt_cudnn_compare(sgt_cudnn_graph *g, int mode, sgt_cudnn_desc x, sgt_cudnn_desc b,
                       sgt_cudnn_desc y);
void sgt_cudnn_select(sgt_cudnn_graph *g, sgt_cudnn_desc x, sgt_cudnn_desc b, sgt_cudnn_desc where,
                      sgt_cudnn_desc y); /* y = where ? x : b */
/* over y's dims of 1 */
void sgt_cudnn_reduce(sgt_cudnn_graph *g, int mode, sgt_cudnn_desc x, sgt_cudnn_desc y);
/* the same, seen as y */
void sgt_cudnn_reshape(sgt_cudnn_graph *g, sgt_cudnn_desc x, sgt_cudnn_desc y);

typedef struct sgt_cudnn_plan {
    sgt_cudnn_desc plan; /* the graph's */
    size_t workspace;    /* bytes of device memory that a run needs */
    int offered;         /* engine configurations that the heuristics gave */
} sgt_cudnn_plan;

/* Of the configurations that the heuristics offer, in their order, the first that becomes a plan.
 * With deterministic, those that say of themselves that they are not are left out, uncounted.
 * Without a handle: what a plan would need, and none. `what` is what an error says there is no plan
 * for. */
int sgt_cudnn_graph_plan(sgt_cudnn_graph *g, const char *what, int deterministic,
                         sgt_cudnn_plan *p);

#ifdef __cplusplus
}
#endif
#endif
