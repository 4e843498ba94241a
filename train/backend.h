/* backend.h: what computes. The loop drives one of these and does not know which: the CPU's, or
 * CUDA's from libsgt-cuda.so.
 *
 *     sgt_backend *b;
 *     if (sgt_cpu_backend_open(&b, &options, &err) < 0) ...;
 *     sgt_init_parameters(b, &model, seed, threads, &err);                      // or sgt_checkpoint_load_model
 *     for (step ...) {
 *         for (each micro-step) b->micro_step(b, step, micro, rows, 1.0 / targets_of_a_step, &err);
 *         b->update(b, step, lr, &err);
 *         b->metrics(b, step, &m, &err);
 *     }
 *     b->close(b);
 *
 * All calls of one backend come from one thread. A call that returns int gives 0 or a negative
 * SGT_E* with *err filled in. */
#ifndef SGT_BACKEND_H
#define SGT_BACKEND_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/ranks.h"
#include "memory/live.h"
#include "model/model.h"
#include "optim.h"
#include "outliers.h"
#include "variants.h"
#include "verdicts.h"

typedef enum sgt_state { SGT_PARAMETERS, SGT_MOMENT1, SGT_MOMENT2, SGT_GRADIENTS } sgt_state;

typedef struct sgt_step_metrics {
    double loss;       /* mean over the step's targets that are not ignored */
    double grad_norm;  /* of the averaged gradient, before clipping, unscaled */
    double loss_scale; /* that the step used: 1 where the precision needs none */
    uint64_t skipped;  /* updates left out so far because a gradient overflowed, or for a spike; */
    uint64_t spikes;   /* the latter */
} sgt_step_metrics;

/* Dynamic loss scaling: starts at options.loss_scale, halves when a gradient is infinite or NaN
 * (the update is left out), doubles after SGT_SCALE_GROWTH good steps. */
typedef struct sgt_scaler {
    float scale;           /* 1 where the precision needs none */
    uint32_t good_steps;   /* since it last changed */
    uint64_t skipped;      /* updates left out since the run began */
    sgt_outliers outliers; /* of skip_spikes */
} sgt_scaler;
#define SGT_SCALE_GROWTH 2000

typedef struct sgt_memory_kind {
    const char *name; /* "weights", "gradients", "moments", "activations", "head", "data", ... */
    uint64_t bytes;
} sgt_memory_kind;
#define SGT_MEMORY_KINDS 16

/* What matrices and activations are kept in. Master weights, moments, gradients, LayerNorm,
 * softmax, loss and update are float32 in all of them. */
typedef enum sgt_precision {
    SGT_PRECISION_FP32,
    SGT_PRECISION_TF32,
    SGT_PRECISION_BF16,
    SGT_PRECISION_FP16
} sgt_precision;

/* What the backward pass computes again instead of keeping it: nothing, GELU and LayerNorm outputs,
 * or a whole block from its input. The same bits in all of them. */
typedef enum sgt_recompute {
    SGT_RECOMPUTE_NONE,
    SGT_RECOMPUTE_GELU,
    SGT_RECOMPUTE_BLOCK
} sgt_recompute;

typedef enum sgt_attention {
    SGT_ATTENTION_AUTO,
    SGT_ATTENTION_OWN,
    SGT_ATTENTION_CUDNN,
    SGT_ATTENTION_NAIVE
} sgt_attention;

typedef struct sgt_backend_options {
    sgt_model model;
    sgt_optim optim;
    uint32_t batch, seq; /* rows of a micro-step here, of this rank, and T */
    uint32_t accum;      /* micro-steps of a step: dropout counts a step's rows; 0: 1 */
    int threads;         /* at least 1; of the CPU */
    sgt_notice notice;
    sgt_notice detail; /* what only some want to know */
    sgt_precision precision;
    sgt_recompute recompute;
    /* read by open alone: a sgt_recompute for each layer; NULL: `recompute` for all */
    const uint8_t *recompute_at;
    /* updates this many deviations out are left out (outliers.h); 0: none is */
    double skip_spikes;
    float loss_scale; /* fp16's first; 0: 65536 */
    /* on embeddings, attention and both residual branches; see kernels/dropout.h */
    float dropout;
    uint64_t seed; /* of dropout */
    int ignoring;  /* whether targets of the id `ignore` have no loss */
    int32_t ignore;
    /* Documents in a row are masked from one another in attention: each begins where rows.starts
     * says or at the id `eot`, the first at the row's start. Positions are counted from the row's
     * start all the same. */
    int documents;
    int32_t eot;
    sgt_attention attention;
    /* CUDA's switches: to measure each one's gain */
    int no_fuse, no_graphs, no_overlap, no_pad_vocab, deterministic;
    uint32_t variants; /* CUDA's, of variants.h */
    /* Read by open alone: a folder, made if missing, for what was timed at start-up, per device and
     * shape (NULL: none); and, for deterministic, what an earlier part of this run chose by timing
     * (backend.choices). */
    const char *cache, *choices;
    /* CUDA: wait after each launch, so that a failure names its kernel; no graphs then */
    int sync_kernels;
    /* read by open alone: paths that are out are not taken; NULL: all may be */
    const sgt_verdicts *verdicts;
    int unverified; /* products that timing has chosen are taken without a look at their results */
    uint32_t card;  /* the device, where there are no ranks: for the self-check, as is the next */
    int untimed;    /* nothing is timed at open: the heuristics' first products, no peak */
    int scrub; /* for tests: after each part of a step what is not live (live.h) is overwritten */
    /* where a step's parts are noted down (trace.h), until close; NULL: nowhere */
    struct sgt_trace *trace;
    /* The others that a step is shared with, until close; NULL: none. Each has every n-th row of a
     * micro-step, from its own number on, and all make the same calls in the same order: open, put
     * with the same floats, get (which gives the whole run's to all, between steps), micro_step,
     * update, metrics (the whole run's too), eval, which is of this rank's rows alone. */
    sgt_ranks *ranks;
} sgt_backend_options;

/* What layer `layer` computes again. */
static inline sgt_recompute sgt_recompute_at(const sgt_backend_options *o, size_t layer)
{
    return o->recompute_at ? (sgt_recompute)o->recompute_at[layer] : o->recompute;
}

typedef struct sgt_batch {
    const uint16_t *tokens; /* (batch, T + 1) */
    const int32_t *targets; /* (batch, T), one below 0 has no loss; NULL: the token after each */
    /* (batch, T), where documents are masked: at which token of the row each one's begins; NULL:
     * the backend tells by the id `eot`. Read before the call returns */
    const int32_t *starts;
    /* Filled in by eval alone, (batch, T) each; NULL: not wanted. A target's loss, 0 where it has
     * none; and whether no id has a larger logit, which is not said of a target without a loss. */
    float *losses;
    uint8_t *greedy;
} sgt_batch;

/* Where the document of each position begins, (batch, T): as the rows say, or by the id `eot`. */
static inline void sgt_batch_starts(const sgt_batch *rows, size_t batch, size_t T, int32_t eot,
                                    int32_t *starts)
{
    if (rows->starts) memcpy(starts, rows->starts, batch * T * sizeof *starts);
    for (size_t i = 0; i < batch * T && !rows->starts; i++) {
        size_t t = i % T;
        starts[i] = rows->tokens[i / T * (T + 1) + t] == eot ? (int32_t)t : t ? starts[i - 1] : 0;
    }
}

typedef struct sgt_backend sgt_backend;
struct sgt_backend {
    const char *name;    /* "cpu" */
    const char *level;   /* "avx512": which kernels; with the library, what the bits depend on */
    const char *library; /* "own matrix products", "oneDNN 2.6.3" */
    /* metrics of a step may be asked for once the step `lag` later was queued: 0 on a CPU */
    unsigned lag;
    /* once micro_step returns, rows given `hold` calls before are no longer read: 0 on a CPU */
    unsigned hold;
    /* where the loader should put rows; NULL: anywhere */
    void *(*pinned_alloc)(void *ctx, size_t bytes);
    void (*pinned_free)(void *ctx, void *p);
    void *pinned_ctx;

    void (*close)(sgt_backend *b); /* frees everything, b too */

    /* Floats first .. first + count - 1 of a tensor of the model, to and from the backend's
     * memory. */
    int (*put)(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
               const float *from, sgt_error *err);
    int (*get)(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, float *to,
               sgt_error *err);

    /* Forward and backward over rows, micro-step `micro` (from 0) of step `step`. Gradients of
     * `scale` times the losses add up until update. */
    int (*micro_step)(sgt_backend *b, uint64_t step, uint32_t micro, const sgt_batch *rows,
                      double scale, sgt_error *err);

    /* Ends step `step` (from 0): divides by the count of targets seen instead of 1/scale, clips,
     * updates, forgets gradients. */
    int (*update)(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
    int (*metrics)(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err);

    /* Sum of losses and count of targets over rows; between steps only. No dropout. */
    int (*eval)(sgt_backend *b, const sgt_batch *rows, double *loss, uint64_t *targets,
                sgt_error *err);

    /* The loss scaler's state and what spikes are told by, for checkpoints; between steps only.
     * NULL: the backend has neither. */
    void (*put_scaler)(sgt_backend *b, uint64_t step, const sgt_scaler *s);
    int (*get_scaler)(sgt_backend *b, sgt_scaler *s, sgt_error *err);

    /* What the backend holds, by kind; returns how many kinds. */
    size_t (*memory)(const sgt_backend *b, sgt_memory_kind kinds[SGT_MEMORY_KINDS]);
    /* Bytes of those kinds, in their order, that are in use at some time of part `part` of a step
     * (live.h), and when it has ended; `again`: in a micro-step after the step's first. NULL: it
     * does not know. */
    void (*live)(const sgt_backend *b, unsigned part, int again, uint64_t within[SGT_LIVE_KINDS],
                 uint64_t after[SGT_LIVE_KINDS]);
    /* JSON text of what was chosen by timing, for state.json; NULL: nothing was */
    const char *choices;

    /* What one second could bring at most, in this precision: measured by products of matrices, and
     * as its maker says; 0: not known. */
    double peak_flops, datasheet_flops;
    const char *peak_name; /* "NVIDIA H200, bf16": what the two are of; NULL where both are 0 */
    /* kernels of a forward pass and of a step; 0 until one was made */
    unsigned launches_forward, launches_step;
    /* bytes of a device with memory of its own, of which `memory` is a part; 0: the machine's */
    uint64_t memory_total;
};

/* The words for precisions, kinds of recompute and attentions, in the order of their enumerations,
 * ended by NULL. */
extern const char *const sgt_precision_words[], *const sgt_recompute_words[],
                                                    *const sgt_attention_words[];

/* SGT_ENOMEM says how much is needed; SGT_EUNSUPPORTED where oneDNN is missing, and names an option
 * that the CPU does not have. */
int sgt_cpu_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);

/* Resident bytes of this process as they are while such a backend's products are planned, and what
 * threads will add: the program, its libraries, and what those keep. Where products cannot be
 * planned, as they are without. */
uint64_t sgt_cpu_backend_program(const sgt_backend_options *o);

/* What such a backend would hold, by kind and in all, without taking it. */
int sgt_cpu_backend_estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                             size_t *count, uint64_t *bytes, sgt_error *err);

/* GPT-2's initialisation: weights from a normal distribution of sigma 0.02, projections back into
 * the residual stream divided by sqrt(2 * layers), biases 0, LayerNorm weights 1, moments 0. A pure
 * function of (seed, tensor, element). */
int sgt_init_parameters(sgt_backend *b, const sgt_model *m, uint64_t seed, int threads,
                        sgt_error *err);

#endif
