/* cudnn_graph.h: builds a cuDNN operation graph, one call per operation, and the plan that runs
 * it.
 *
 *     sgt_cudnn_graph g;
 *     sgt_cudnn_graph_init(&g, api, handle, &err);
 *     sgt_cudnn_desc x = sgt_cudnn_tensor(&g, &(sgt_cudnn_place){.uid = 1, ...}), y = ...;
 *     sgt_cudnn_matmul(&g, x, w, y);
 *     sgt_cudnn_plan p;
 *     int rc = sgt_cudnn_graph_plan(&g, "a product", 0, &p);   // the first failure of all these
 *     ...
 *     sgt_cudnn_graph_clear(&g);                               // frees the plan too
 *
 * If a call fails, the later calls do nothing; the graph keeps the failure, and
 * sgt_cudnn_graph_plan returns it. Tensors have four dimensions. Arithmetic is float32. Use a graph
 * from one thread at a time. */
#ifndef SGT_CUDNN_GRAPH_H
#define SGT_CUDNN_GRAPH_H

#include "kernels/cuda/cudnn.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SGT_CUDNN_OPS = 32, SGT_CUDNN_DESCS = 512 };

typedef struct sgt_cudnn_graph {
    const sgt_cudnn *api;
    sgt_cudnn_handle handle;
    sgt_cudnn_desc ops[SGT_CUDNN_OPS], descs[SGT_CUDNN_DESCS];
    int op_count, desc_count;
    int64_t last_uid; /* last uid that the graph gave to a virtual tensor */
    int rc;
    sgt_error *err;
} sgt_cudnn_graph;

typedef enum sgt_cudnn_kind {
    /* in device memory, 16-byte aligned; the caller passes its address at each run */
    SGT_CUDNN_MEMORY,
    SGT_CUDNN_SCALAR, /* one float in host memory, read when the run is put on a stream */
    SGT_CUDNN_VIRTUAL /* exists only inside the graph, which assigns its uid */
} sgt_cudnn_kind;

typedef struct sgt_cudnn_place {
    int64_t uid, dim[4], stride[4]; /* strides in numbers */
    int type;                       /* SGT_CUDNN_DATA_* */
    sgt_cudnn_kind kind;
    /* SGT_CUDNN_TENSOR_REORDERING_*: the engine chooses the order; 0: the order of the strides */
    int reordering;
} sgt_cudnn_place;

/* Begin a graph for the device of `handle`. */
void sgt_cudnn_graph_init(sgt_cudnn_graph *g, const sgt_cudnn *api, sgt_cudnn_handle handle,
                          sgt_error *err);
/* Free everything that the graph owns; *g may be all zeros. */
void sgt_cudnn_graph_clear(sgt_cudnn_graph *g);

/* Create a tensor's descriptor, which lives as long as the graph. */
sgt_cudnn_desc sgt_cudnn_tensor(sgt_cudnn_graph *g, const sgt_cudnn_place *p);

/* Add the operation c = a b. */
void sgt_cudnn_matmul(sgt_cudnn_graph *g, sgt_cudnn_desc a, sgt_cudnn_desc b, sgt_cudnn_desc c);
/* Add the operation y = f(x), or y = f(x, b). */
void sgt_cudnn_unary(sgt_cudnn_graph *g, int mode, sgt_cudnn_desc x, sgt_cudnn_desc y);
void sgt_cudnn_binary(sgt_cudnn_graph *g, int mode, sgt_cudnn_desc x, sgt_cudnn_desc b,
                      sgt_cudnn_desc y);
/* Add the operation y = the index along `axis`, or y = the comparison of x with b. */
void sgt_cudnn_index(sgt_cudnn_graph *g, int64_t axis, sgt_cudnn_desc x, sgt_cudnn_desc y);
void sgt_cudnn_compare(sgt_cudnn_graph *g, int mode, sgt_cudnn_desc x, sgt_cudnn_desc b,
                       sgt_cudnn_desc y);
void sgt_cudnn_select(sgt_cudnn_graph *g, sgt_cudnn_desc x, sgt_cudnn_desc b, sgt_cudnn_desc where,
                      sgt_cudnn_desc y); /* add y = x if `where` is true, else b */
/* Add the operation y = x reduced along each dimension in which y has size 1. */
void sgt_cudnn_reduce(sgt_cudnn_graph *g, int mode, sgt_cudnn_desc x, sgt_cudnn_desc y);
/* Add the operation y = x, reshaped. */
void sgt_cudnn_reshape(sgt_cudnn_graph *g, sgt_cudnn_desc x, sgt_cudnn_desc y);

typedef struct sgt_cudnn_plan {
    sgt_cudnn_desc plan; /* owned by the graph */
    size_t workspace;    /* bytes of device memory that a run needs */
} sgt_cudnn_plan;

/* Choose the first configuration, in the order of the heuristics, that can become a plan. If
 * `deterministic` is set, configurations that declare themselves nondeterministic are skipped.
 * `what` names the computation in error messages. */
int sgt_cudnn_graph_plan(sgt_cudnn_graph *g, const char *what, int deterministic,
                         sgt_cudnn_plan *p);

#ifdef __cplusplus
}
#endif
#endif
