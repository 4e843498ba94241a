/* backend.h: what computes. The loop drives one of these and does not know which; the CPU fills it in, CUDA will.
 *
 *     sgt_backend *b;
 *     if (sgt_cpu_backend_open(&b, &options, &err) < 0) ...;
 *     sgt_init_parameters(b, &model, seed, threads, &err);                      // or sgt_checkpoint_load_model
 *     for (step ...) {
 *         for (each micro-step) b->micro_step(b, rows, 1.0 / targets_of_a_step, &err);
 *         b->update(b, step, lr, &err);
 *         b->metrics(b, step, &m, &err);
 *     }
 *     b->close(b);
 *
 * All calls of one backend come from one thread. A call that returns int gives 0 or a negative SGT_E* with *err filled
 * in. */
#ifndef SGT_BACKEND_H
#define SGT_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model.h"
#include "optim.h"

typedef enum sgt_state { SGT_PARAMETERS, SGT_MOMENT1, SGT_MOMENT2, SGT_GRADIENTS } sgt_state;

typedef struct sgt_step_metrics {
    double loss;      /* mean over the step's targets */
    double grad_norm; /* of the averaged gradient, before clipping */
} sgt_step_metrics;

typedef struct sgt_memory_kind {
    const char *name; /* "weights", "gradients", "moments", "activations", "head", "data", ... */
    uint64_t bytes;
} sgt_memory_kind;
#define SGT_MEMORY_KINDS 12

typedef struct sgt_backend_options {
    sgt_model model;
    sgt_optim optim;
    uint32_t batch, seq;  /* rows of a micro-step here, and T */
    int threads;          /* at least 1 */
    sgt_notice notice;
} sgt_backend_options;

typedef struct sgt_backend sgt_backend;
struct sgt_backend {
    const char *name;    /* "cpu" */
    const char *level;   /* "avx512": which kernels; with the library, what the bits depend on */
    const char *library; /* "oneDNN 2.6.3" */
    unsigned lag;        /* metrics of a step may be asked for once the step `lag` later was queued: 0 on a CPU */
    unsigned hold;       /* once micro_step returns, rows given `hold` calls before are no longer read: 0 on a CPU */
    void *(*pinned_alloc)(void *ctx, size_t bytes); /* where the loader should put rows; NULL: anywhere */
    void (*pinned_free)(void *ctx, void *p);
    void *pinned_ctx;

    void (*close)(sgt_backend *b); /* frees everything, b too */

    /* Floats first .. first + count - 1 of a tensor of the model, to and from the backend's memory. */
    int (*put)(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, const float *from,
               sgt_error *err);
    int (*get)(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, float *to, sgt_error *err);

    /* Forward and backward over rows (batch, T + 1). Gradients of `scale` times the losses add up until update. */
    int (*micro_step)(sgt_backend *b, const uint16_t *rows, double scale, sgt_error *err);

    /* Ends step `step` (from 0): divides by the count of targets seen instead of 1/scale, clips, updates, forgets
     * gradients. */
    int (*update)(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
    int (*metrics)(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err);

    /* Sum of losses and count of targets over rows (batch, T + 1); between steps only. */
    int (*eval)(sgt_backend *b, const uint16_t *rows, double *loss, uint64_t *targets, sgt_error *err);

    /* What the backend holds, by kind; returns how many kinds. */
    size_t (*memory)(const sgt_backend *b, sgt_memory_kind kinds[SGT_MEMORY_KINDS]);
};

/* SGT_ENOMEM says how much is needed; SGT_EUNSUPPORTED where oneDNN is missing. */
int sgt_cpu_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);

/* GPT-2's initialisation: weights from a normal distribution of sigma 0.02, projections back into the residual stream
 * divided by sqrt(2 * layers), biases 0, LayerNorm weights 1, moments 0. A pure function of (seed, tensor, element). */
int sgt_init_parameters(sgt_backend *b, const sgt_model *m, uint64_t seed, int threads, sgt_error *err);

#endif
