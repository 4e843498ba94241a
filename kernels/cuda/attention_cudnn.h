/* attention_cudnn.h: causal attention, forward and backward, with the fused kernels of cuDNN 9.10.2
 * or newer.
 *
 *     sgt_cudnn_attention *a;
 *     sgt_cudnn_attention_options o = {
 *         .type = SGT_BF16, .B = 64, .T = 1024, .H = 12, .D = 64, .scale = 0.125f};
 *     if (sgt_cudnn_attention_open(&a, &o, &err) < 0) ...;           // one line; fall back
 *     sgt_cuda_malloc(&workspace, sgt_cudnn_attention_workspace(a), &err);
 *     sgt_cudnn_attention_forward(a, stream, out, lse, qkv, workspace);
 *     sgt_cudnn_attention_backward(a, stream, dqkv, dout, out, lse, qkv, workspace);
 *
 * The arrays are those of sgt_cuda_attention: qkv and dqkv (B, T, 3, H, D), out and dout (B, T, H,
 * D), lse (B, H, T) float, in device memory, 16-byte aligned. One sgt_cudnn_attention serves all
 * layers of a model. Use it from one thread, and on one stream at a time, because all layers share
 * the workspace. On the host, a fake of cuDNN (tests/kernels/host/cudnn.cpp) recognizes the graphs
 * and calls kernels/ref. */
#ifndef SGT_CUDA_ATTENTION_CUDNN_H
#define SGT_CUDA_ATTENTION_CUDNN_H

#include "loader/base/error.h"
#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgt_cudnn_attention sgt_cudnn_attention;

typedef struct sgt_cudnn_attention_options {
    sgt_cuda_type type; /* SGT_BF16 or SGT_F16 */
    /* B sequences of T tokens, with H heads of D columns each. T >= 2; D is a multiple of 8, up to
     * 128; B and H are at least 1, and B*T is at most 2^30. */
    size_t B, T, H, D;
    float scale; /* 1/sqrt(D) */
    /* 1: results have the same bits in each run, which takes about 2*B*H*T*T more bytes of
     * workspace; 0: the last bits of results can differ from run to run */
    int deterministic;
} sgt_cudnn_attention_options;

/* Load cuDNN and plan both passes for the current device. Return SGT_ENOMEM if memory runs out.
 * Return SGT_EUNSUPPORTED if cuDNN is not on this machine, offers no execution plan, or does not
 * support `type`, D or T. */
int sgt_cudnn_attention_open(sgt_cudnn_attention **out, const sgt_cudnn_attention_options *o,
                             sgt_error *err);
/* Free `a`, which may be NULL. The call waits for the device, because cuDNN waits when its objects
 * are freed. */
void sgt_cudnn_attention_close(sgt_cudnn_attention *a);

/* Return the library's name and version, such as "cuDNN 9.19.0". */
const char *sgt_cudnn_attention_library(const sgt_cudnn_attention *a);

/* Return the size in bytes of the workspace, which both passes may share. It holds the memory that
 * cuDNN's kernels need. In the backward pass, it also holds delta (B, H, T), the sums of dout*out,
 * and the sums of dQ (B, H, T, D). The caller allocates it in device memory, 256-byte aligned. The
 * caller need not initialize it, and may overwrite it between passes. */
size_t sgt_cudnn_attention_workspace(const sgt_cudnn_attention *a);

/* Set the workspace's sums of dQ to 0. Call it before each backward pass, unless cuDNN's kernels
 * clear the sums themselves. NVIDIA's own frontend assumes that the kernels of cuDNN 9.6 and newer
 * do. We assume it only if a self-check, which fills the workspace with NaN before a backward pass,
 * has confirmed it. */
void sgt_cudnn_attention_clear(const sgt_cudnn_attention *a, sgt_cuda_stream s, void *workspace);

/* Enqueue the kernels of the forward or backward pass on the stream and return. The calls allocate
 * no device memory and do not wait, so a stream may capture them. Inputs are not changed. */
void sgt_cudnn_attention_forward(sgt_cudnn_attention *a, sgt_cuda_stream s, void *out, float *lse,
                                 const void *qkv, void *workspace);
void sgt_cudnn_attention_backward(sgt_cudnn_attention *a, sgt_cuda_stream s, void *dqkv,
                                  const void *dout, const void *out, const float *lse,
                                  const void *qkv, void *workspace);

#ifdef __cplusplus
}
#endif
#endif
