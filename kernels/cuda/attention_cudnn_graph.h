/* attention_cudnn_graph.h: describes attention's forward and backward pass to cuDNN; used by
 * attention_cudnn.c only. */
#ifndef SGT_KERNELS_ATTENTION_CUDNN_GRAPH_H
#define SGT_KERNELS_ATTENTION_CUDNN_GRAPH_H

#include "kernels/cuda/attention_cudnn.h"
#include "kernels/cuda/cudnn_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Unique ids of the tensors that have memory or a value. */
enum uid { Q = 1, K, V, O, LSE, DO, DQ, DK, DV, DELTA, DQ_SUMS, SCALE, MASKED, KEPT, UIDS };

/* Add the operations of a pass to an empty graph. The graph keeps an error until it is planned. */
void sgt_cudnn_attention_describe_forward(sgt_cudnn_graph *g, const sgt_cudnn_attention_options *o);
void sgt_cudnn_attention_describe_backward(sgt_cudnn_graph *g,
                                           const sgt_cudnn_attention_options *o);

#ifdef __cplusplus
}
#endif
#endif
