/* attention_cudnn.h: causal attention both ways by cuDNN's fused kernels, where cuDNN 9.10.2 or
 * newer is found.
 *
 *     sgt_cudnn_attention *a;
 *     sgt_cudnn_attention_options o = {.type = SGT_BF16, .B = 64, .T = 1024, .H = 12, .D = 64, .scale = 0.125f};
 *     if (sgt_cudnn_attention_open(&a, &o, &err) < 0) ...;           // one line; another path can serve
 *     sgt_cuda_malloc(&workspace, sgt_cudnn_attention_workspace(a), &err);
 *     sgt_cudnn_attention_forward(a, stream, out, lse, qkv, workspace);
 *     sgt_cudnn_attention_backward(a, stream, dqkv, dout, out, lse, qkv, workspace);
 *
 * The arrays are those of sgt_cuda_attention: qkv and dqkv (B, T, 3, H, D), out and dout (B, T, H,
 * D), lse (B, H, T) float, in device memory, 16-byte aligned. One attention serves all layers of a
 * model, from one thread, on one stream at a time (they share the workspace). Not yet run on a GPU;
 * its graphs are held to kernels/ref on the host, where tests/kernels/cudnn/stand_in.c does what
 * they say. */
#ifndef SGT_CUDA_ATTENTION_CUDNN_H
#define SGT_CUDA_ATTENTION_CUDNN_H

#include "base/error.h"
#include "cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgt_cudnn_attention sgt_cudnn_attention;

typedef struct sgt_cudnn_attention_options {
    sgt_cuda_type type; /* SGT_BF16 or SGT_F16 */
    size_t B, T, H, D;  /* D a multiple of 8 to 128; T at least 2 */
    float scale;        /* 1/sqrt(D) */
    int deterministic;  /* the same bits again, for about 2*B*H*T*T bytes more of workspace */
} sgt_cudnn_attention_options;

/* Loads cuDNN and plans both passes for the current device. SGT_EUSAGE for options that make no
 * sense; SGT_EUNSUPPORTED: "cuDNN: libcudnn.so.9 is not on this machine", "cuDNN: no execution plan
 * for ...", and which type, head size or length the graphs do not serve; SGT_ENOMEM. */
int sgt_cudnn_attention_open(sgt_cudnn_attention **out, const sgt_cudnn_attention_options *o,
                             sgt_error *err);
/* waits for the device, as cuDNN does; NULL is fine */
void sgt_cudnn_attention_close(sgt_cudnn_attention *a);

/* Bytes of device memory, 256-byte aligned, that either pass needs, of any content: the engines'
 * own, and for backward sums of dout*out (B, H, T) and of dQ (B, H, T, D). Nothing in it outlives a
 * pass. */
size_t sgt_cudnn_attention_workspace(const sgt_cudnn_attention *a);

/* These put kernels on the stream and return. They allocate no device memory and wait for nothing,
 * so that a stream that is being captured takes them. Inputs stay as they are. */
void sgt_cudnn_attention_forward(sgt_cudnn_attention *a, sgt_cuda_stream s, void *out, float *lse,
                                 const void *qkv, void *workspace);
void sgt_cudnn_attention_backward(sgt_cudnn_attention *a, sgt_cuda_stream s, void *dqkv,
                                  const void *dout, const void *out, const float *lse,
                                  const void *qkv, void *workspace);

/* Whether backward passes put zeros in dQ's sums first (they do unless told otherwise). By NVIDIA's
 * frontend, engines of 9.6 and later put them there themselves; that is an assumption here, which
 * each card decides for itself (train/cuda/attention.c). Returns what is done from now on: zeros in
 * any case before 9.6. */
int sgt_cudnn_attention_clear_sums(sgt_cudnn_attention *a, int clear);

/* Where in the workspace dQ's sums lie, for a test of the above; NULL if there are none
 * (deterministic). */
void *sgt_cudnn_attention_sums(const sgt_cudnn_attention *a, void *workspace, size_t *bytes);

/* NULL, or what cuDNN said of the first pass that it refused; later ones are left out.
 * sgt_cuda_check tells it too. */
const char *sgt_cudnn_attention_failed(const sgt_cudnn_attention *a);

/* What cuDNN would do on a device that is not here, described in the JSON of its device
 * properties. */
typedef struct sgt_cudnn_attention_offer {
    int forward, backward; /* engine configurations offered for each pass */
    size_t workspace;      /* what sgt_cudnn_attention_workspace would be, by the first of them */
} sgt_cudnn_attention_offer;
int sgt_cudnn_attention_survey(sgt_cudnn_attention_offer *out, const sgt_cudnn_attention_options *o,
                               const char *device_json, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
