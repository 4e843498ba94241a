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
 * content; nothing in it is kept between passes. */
size_t sgt_cudnn_attention_workspace(const sgt_cudnn_attention *a);

/* Launch a pass's kernels on the stream and return. They allocate no device memory and wait for
 * nothing, so a stream may capture them. Inputs are not changed. */
void sgt_cudnn_attention_forward(sgt_cudnn_attention *a, sgt_cuda_stream s, void *out, float *lse,
                                 const void *qkv, void *workspace);
void sgt_cudnn_attention_backward(sgt_cudnn_attention *a, sgt_cuda_stream s, void *dqkv,
                                  const void *dout, const void *out, const float *lse,
                                  const void *qkv, void *workspace);

/* Set whether backward passes first zero dQ's sums (by default they do). NVIDIA's frontend assumes
 * that engines of cuDNN 9.6 and later zero them; this is tested on each GPU
 * (train/cuda/attention.c). Returns the setting in effect: always 1 before 9.6. */
int sgt_cudnn_attention_clear_sums(sgt_cudnn_attention *a, int clear);

/* Return where dQ's sums are in the workspace, for a test of sgt_cudnn_attention_clear_sums, and
 * set their size; return NULL if there are none (deterministic). */
void *sgt_cudnn_attention_sums(const sgt_cudnn_attention *a, void *workspace, size_t *bytes);

/* Return cuDNN's message for the first pass that it refused, or NULL if it refused none.
 * sgt_cuda_check reports it too. */
const char *sgt_cudnn_attention_failed(const sgt_cudnn_attention *a);

/* Result of sgt_cudnn_attention_survey: what cuDNN would do on a device that this machine lacks,
 * described by its device properties in JSON. */
typedef struct sgt_cudnn_attention_offer {
    int forward, backward; /* number of engine configurations offered for each pass */
    size_t workspace; /* sgt_cudnn_attention_workspace with the first configuration of each pass */
} sgt_cudnn_attention_offer;
int sgt_cudnn_attention_survey(sgt_cudnn_attention_offer *out, const sgt_cudnn_attention_options *o,
                               const char *device_json, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
