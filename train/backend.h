/* backend.h: the interface of the CPU backend and of the CUDA backend (libsgt-cuda.so). The loop
 * drives one of them without knowing which.
 *
 *     sgt_backend *b;
 *     if (sgt_cpu_backend_open(&b, &options, &err) < 0) ...;
 *     sgt_init_parameters(b, &model, seed, threads, &err);    // or sgt_checkpoint_load_model
 *     for (step ...) {
 *         for (each micro-step)
 *             b->micro_step(b, step, micro, rows, 1.0 / targets_of_a_step, &err);
 *         b->update(b, step, lr, &err);
 *         b->metrics(b, step, &m, &err);
 *     }
 *     b->close(b);
 *
 * All calls on a backend come from one thread. A call that returns int returns 0, or a negative
 * SGT_E* with *err filled in. */
#ifndef SGT_BACKEND_H
#define SGT_BACKEND_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/ranks.h"
#include "train/memory/live.h"
#include "train/model/model.h"
#include "train/optim.h"
#include "kernels/outliers.h"
#include "train/variants.h"
#include "train/verdicts.h"

typedef enum sgt_state { SGT_PARAMETERS, SGT_MOMENT1, SGT_MOMENT2, SGT_GRADIENTS } sgt_state;

typedef struct sgt_step_metrics {
    double loss;       /* mean over the step's targets that are not ignored */
    double grad_norm;  /* norm of the averaged, unscaled gradient before clipping */
    double loss_scale; /* scale used in the step; 1 if the precision needs none */
    uint64_t skipped;  /* updates skipped so far because of an overflow or a spike; */
    uint64_t spikes;   /* those because of a spike */
} sgt_step_metrics;

/* Dynamic loss scaling. The scale starts at options.loss_scale. It halves when a gradient is
 * infinite or NaN, and that update is skipped. It doubles after SGT_SCALE_GROWTH good steps. */
typedef struct sgt_scaler {
    float scale;           /* 1 if the precision needs none */
    uint32_t good_steps;   /* good steps since the scale last changed */
    uint64_t skipped;      /* updates skipped since the run began */
    sgt_outliers outliers; /* history for skip_spikes */
} sgt_scaler;
#define SGT_SCALE_GROWTH 2000

typedef struct sgt_memory_kind {
    const char *name; /* "weights", "gradients", "moments", "activations", "head", "data", ... */
    uint64_t bytes;
} sgt_memory_kind;
#define SGT_MEMORY_KINDS 16

/* Type of matrices and activations. Master weights, moments, gradients, LayerNorm, softmax, loss
 * and update are float32 in all of them. */
typedef enum sgt_precision {
    SGT_PRECISION_FP32,
    SGT_PRECISION_TF32,
    SGT_PRECISION_BF16,
    SGT_PRECISION_FP16
} sgt_precision;

/* What the backward pass recomputes instead of keeping it: nothing, GELU and LayerNorm outputs, or
 * a whole block from its input. The results are the same to the bit. */
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
    uint32_t batch, seq; /* rows of a micro-step on this rank; tokens per row, T */
    uint32_t accum;      /* micro-steps per step, for the dropout of a step's rows; 0: 1 */
    int threads;         /* CPU threads, at least 1 */
    sgt_notice notice;
    sgt_notice detail; /* details that few users want */
    sgt_precision precision;
    sgt_recompute recompute;
    /* sgt_recompute of each layer, used only during open; NULL: `recompute` for all */
    const uint8_t *recompute_at;
    /* skip updates whose loss or norm is this many deviations out (outliers.h); 0: none */
    double skip_spikes;
    float loss_scale; /* first loss scale of fp16; 0: 65536 */
    /* probability, for embeddings, attention and both residual branches (kernels/dropout.h) */
    float dropout;
    uint64_t seed; /* seed of dropout */
    int ignoring;  /* whether targets with the id `ignore` have no loss */
    int32_t ignore;
    /* Mask the documents of a row from one another in attention. A document begins where
     * rows.starts says, or at the id `eot`; the first begins with the row. Positions still count
     * from the row's start. */
    int documents;
    int32_t eot;
    sgt_attention attention;
    /* Switches to measure the gain of each technique. A CPU has only no_overlap: it then defers no
     * update. */
    int no_fuse, no_graphs, no_overlap, no_pad_vocab, deterministic;
    uint32_t variants; /* variants of CUDA (variants.h) */
    /* Used only during open. `cache`: folder, created if missing, for timing results per device and
     * shape (NULL: none). `choices`: for `deterministic`, the algorithms that an earlier part of
     * this run chose by timing (backend.choices). */
    const char *cache, *choices;
    /* CUDA: wait after each launch, so that an error names its kernel; disables graphs */
    int sync_kernels;
    /* verdicts of the self-check, used only during open; paths that are out are not taken; NULL:
     * all may be taken */
    const sgt_verdicts *verdicts;
    int unverified; /* use the matrix products that timing chose without checking their results */
    uint32_t card;  /* device number without ranks, for the self-check */
    /* for the self-check: time nothing at open; take the heuristics' first products, no peak */
    int untimed;
    /* for tests: overwrite all memory that is not live (live.h) after each part of a step */
    int scrub;
    /* trace that records the parts of a step (trace.h), valid until close; NULL: none */
    struct sgt_trace *trace;
    /* The ranks that share a step, valid until close; NULL: none. Of a micro-step, rank r of n has
     * rows r, r + n, and so on. All ranks make the same calls in the same order: open, put with the
     * same floats, get (between steps; gives every rank the whole tensor), micro_step, update,
     * metrics (of the whole run) and eval, which covers only this rank's rows. */
    sgt_ranks *ranks;
} sgt_backend_options;

/* Return what `layer` recomputes. */
static inline sgt_recompute sgt_recompute_at(const sgt_backend_options *o, size_t layer)
{
    return o->recompute_at ? (sgt_recompute)o->recompute_at[layer] : o->recompute;
}

typedef struct sgt_batch {
    const uint16_t *tokens; /* (batch, T + 1) */
    const int32_t *targets; /* (batch, T), below 0: no loss; NULL: each token's successor */
    /* (batch, T) if documents are masked: index in the row of the token that begins the document.
     * NULL: the backend finds it by the id `eot`. Read before the call returns. */
    const int32_t *starts;
    /* Outputs of eval, (batch, T) each; NULL: not wanted. `losses`: loss of each target, 0 if it
     * has none. `greedy`: whether no id has a larger logit; undefined for a target without a
     * loss. */
    float *losses;
    uint8_t *greedy;
} sgt_batch;

/* Write the start of each position's document, (batch, T): from rows->starts, or by the id
 * `eot`. */
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
    const char *level;   /* "avx512": the kernels; the bits depend on it and on `library` */
    const char *library; /* "own matrix products", "oneDNN 2.6.3" */
    /* steps of delay: metrics of a step can be read once step + `lag` was queued; 0 on a CPU */
    unsigned lag;
    /* calls of delay: when micro_step returns, rows given `hold` calls before may be reused; 0 on a
     * CPU */
    unsigned hold;
    /* allocator for the loader's rows; NULL: any memory will do */
    void *(*pinned_alloc)(void *ctx, size_t bytes);
    void (*pinned_free)(void *ctx, void *p);
    void *pinned_ctx;

    void (*close)(sgt_backend *b); /* frees everything, including b */

    /* Copy floats first .. first + count - 1 of a tensor to the backend's memory, or back. */
    int (*put)(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
               const float *from, sgt_error *err);
    int (*get)(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, float *to,
               sgt_error *err);

    /* Run forward and backward over `rows`, micro-step `micro` (from 0) of step `step`. Gradients
     * of `scale` times the losses accumulate until update. */
    int (*micro_step)(sgt_backend *b, uint64_t step, uint32_t micro, const sgt_batch *rows,
                      double scale, sgt_error *err);

    /* End step `step` (from 0): divide by the number of targets seen instead of 1/scale, clip,
     * update, and clear the gradients. */
    int (*update)(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
    int (*metrics)(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err);

    /* Compute the sum of losses and the number of targets over `rows`, without dropout. Call it
     * only between steps. */
    int (*eval)(sgt_backend *b, const sgt_batch *rows, double *loss, uint64_t *targets,
                sgt_error *err);

    /* Set or get the state of the loss scaler and of spike detection, for checkpoints. Call them
     * only between steps. NULL: the backend has neither. */
    void (*put_scaler)(sgt_backend *b, uint64_t step, const sgt_scaler *s);
    int (*get_scaler)(sgt_backend *b, sgt_scaler *s, sgt_error *err);

    /* List the memory that the backend holds, by kind; return the number of kinds. */
    size_t (*memory)(const sgt_backend *b, sgt_memory_kind kinds[SGT_MEMORY_KINDS]);
    /* Give the bytes of those kinds, in their order, that are in use during part `part` of a step
     * (live.h), and after it. `again`: in a micro-step after the step's first. NULL: not
     * supported. */
    void (*live)(const sgt_backend *b, unsigned part, int again, uint64_t within[SGT_LIVE_KINDS],
                 uint64_t after[SGT_LIVE_KINDS]);
    /* JSON text of the algorithms chosen by timing, for state.json; NULL: none */
    const char *choices;

    /* Peak operations per second in this precision: measured with matrix products, and from the
     * datasheet; 0: unknown. */
    double peak_flops, datasheet_flops;
    /* device and precision of the two peaks, "NVIDIA H200, bf16"; NULL if both are 0 */
    const char *peak_name;
    /* kernel launches of a forward pass and of a step; 0 until one has run */
    unsigned launches_forward, launches_step;
    /* bytes of a device with its own memory, which holds `memory`; 0: it uses the machine's */
    uint64_t memory_total;
};

/* Option words of the enumerations, in their order, NULL at the end. */
extern const char *const sgt_precision_words[], *const sgt_recompute_words[],
                                                    *const sgt_attention_words[];

/* Open a CPU backend. SGT_ENOMEM says how much memory is needed. SGT_EUNSUPPORTED: oneDNN is
 * missing, or an option, which is named, is not available on a CPU. */
int sgt_cpu_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);

/* Return the resident memory of this process while such a backend plans its matrix products, plus
 * that of its threads: the program, its libraries, and what they keep. If products cannot be
 * planned, return it without them. */
uint64_t sgt_cpu_backend_program(const sgt_backend_options *o);

/* Estimate what such a backend would hold, by kind and in total, without allocating it. */
int sgt_cpu_backend_estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                             size_t *count, uint64_t *bytes, sgt_error *err);

/* Initialise as GPT-2 does: weights from a normal distribution with sigma 0.02, projections into
 * the residual stream divided by sqrt(2 * layers), biases 0, LayerNorm weights 1, moments 0. A pure
 * function of (seed, tensor, element). */
int sgt_init_parameters(sgt_backend *b, const sgt_model *m, uint64_t seed, int threads,
                        sgt_error *err);

#endif
