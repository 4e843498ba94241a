/* attention_cudnn.h: causal attention, forward and backward, by the fused kernels of cuDNN 9.10.2
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
 * D), lse (B, H, T) float, in device memory, 16-byte aligned. One attention serves all layers of a
 * model, from one thread, on one stream at a time (they share the workspace). On the host,
 * a fake of cuDNN (tests/kernels/host/cudnn.cpp) knows the graphs and calls kernels/ref. */
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
    size_t B, T, H, D;  /* D a multiple of 8, up to 128; T at least 2 */
    float scale;        /* 1/sqrt(D) */
    /* 1: give the same bits each time, for which the workspace needs about 2*B*H*T*T bytes more */
    int deterministic;
} sgt_cudnn_attention_options;

/* Load cuDNN and plan both passes for the current device. Returns SGT_EUSAGE for invalid options;
 * SGT_ENOMEM; or SGT_EUNSUPPORTED if cuDNN is not on this machine, has no execution plan, or does
 * not support the type, head size or length. */
int sgt_cudnn_attention_open(sgt_cudnn_attention **out, const sgt_cudnn_attention_options *o,
                             sgt_error *err);
/* Wait for the device, as cuDNN does, and free the attention; `a` may be NULL. */
void sgt_cudnn_attention_close(sgt_cudnn_attention *a);

/* Return the bytes of workspace that either pass needs: the engines' own, and for backward the sums
 * of dout*out (B, H, T) and of dQ (B, H, T, D). It is device memory, 256-byte aligned, with any
 * content; nothing in it is kept between passes. Engines clear dQ's sums themselves, which NVIDIA's
 * frontend relies on from cuDNN 9.6 on; the self-check runs them with NaN there. */
size_t sgt_cudnn_attention_workspace(const sgt_cudnn_attention *a);

/* Launch a pass's kernels on the stream and return. They allocate no device memory and wait for
 * nothing, so a stream may capture them. Inputs are not changed. */
void sgt_cudnn_attention_forward(sgt_cudnn_attention *a, sgt_cuda_stream s, void *out, float *lse,
                                 const void *qkv, void *workspace);
void sgt_cudnn_attention_backward(sgt_cudnn_attention *a, sgt_cuda_stream s, void *dqkv,
                                  const void *dout, const void *out, const float *lse,
                                  const void *qkv, void *workspace);

#ifdef __cplusplus
}
#endif
#endif
