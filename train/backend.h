/* backend.h: the interface of the CPU backend and of the CUDA backend (libsgt-cuda.so). The
 * training loop uses both through this interface.
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
#include "train/model/model.h"
#include "kernels/outliers.h"
#include "train/verdicts.h"
#include "kernels/kernels.h"
#include "kernels/muon.h"

/* ---- the optimizer and learning-rate schedules ---- */

/* SGT_MUON: Muon for the matrices of blocks (kernels/muon.h), AdamW for all other tensors */
typedef enum sgt_optim_kind { SGT_ADAMW, SGT_SGD, SGT_MUON } sgt_optim_kind;

/* The optimizer's options, most of which the command line sets. The doubles are rounded to float
 * when they are used. */
typedef struct sgt_optim {
    sgt_optim_kind kind;
    /* for AdamW, including the tensors that AdamW updates when the optimizer is Muon */
    float beta1, beta2, eps;
    int bf16_moments; /* 1: AdamW stores its moments in bfloat16 (kernels/moments.h) */
    /* for SGD, which stores its momentum in the place of AdamW's first moment */
    double momentum;
    int nesterov;
    double weight_decay; /* decoupled weight decay, applied only to tensors of two dimensions */
    /* largest global norm to which the gradients of SGD and AdamW are clipped; 0: no clipping.
     * Muon's gradients are not clipped, but are included in the norm */
    double grad_clip;
} sgt_optim;

/* Return the factor, at most 1, that scales gradients of norm `norm` to a norm of at most
 * o->grad_clip. */
double sgt_optim_clip(const sgt_optim *o, double norm);

/* Return the factors of an update. step: number of updates before it. decay: 1 if the tensor has
 * two dimensions, so that weight decay applies. */
sgt_adamw sgt_optim_adamw(const sgt_optim *o, uint64_t step, double lr, double grad_scale,
                          int decay);
sgt_sgd sgt_optim_sgd(const sgt_optim *o, double lr, double grad_scale, int decay);
sgt_muon_update sgt_optim_muon(const sgt_optim *o, double lr, double grad_scale);

typedef enum sgt_schedule_kind {
    SGT_COSINE,
    SGT_LINEAR,
    SGT_CONSTANT,
    SGT_WSD,
    SGT_SCHEDULES
} sgt_schedule_kind;

typedef struct sgt_schedule {
    sgt_schedule_kind kind;
    double lr, min_lr;
    uint64_t warmup, steps; /* the warm-up may be longer than the run */
    /* first: step at which the schedule begins, which is not 0 if a resumed run started a new
     * schedule; from: the rate before that step, at which its warm-up starts */
    uint64_t first;
    double from;
} sgt_schedule;

extern const char *const sgt_schedule_words[]; /* "cosine", "linear", "constant", "wsd"; NULL */

/* Return the learning rate at step s (from 0) of S = c->steps, for a schedule that begins at step
 * 0. It is lr*(s+1)/warmup while s < warmup. After that, "cosine" and "linear" go from lr at s =
 * warmup to min_lr at s = S, "constant" stays at lr, and "wsd" ("warm-up, stable, decay") stays at
 * lr and goes linearly to min_lr over the last fifth of the run. A schedule that begins later
 * counts steps from its beginning, and goes from `from` to lr in its warm-up. */
double sgt_schedule_lr(const sgt_schedule *c, uint64_t s);

/* ---- a step ---- */

typedef enum sgt_state { SGT_PARAMETERS, SGT_MOMENT1, SGT_MOMENT2, SGT_GRADIENTS } sgt_state;

typedef struct sgt_step_metrics {
    double loss;       /* mean over the step's targets that are not ignored */
    double grad_norm;  /* norm of the averaged, unscaled gradient before clipping */
    double loss_scale; /* loss scale used in the step; 1 if the precision needs none */
    uint64_t skipped;  /* updates skipped so far because of an overflow or a spike */
    uint64_t spikes;   /* updates skipped so far because of a spike */
} sgt_step_metrics;

/* Dynamic loss scaling. The scale starts at options.loss_scale. If a gradient is infinite or NaN,
 * the update is skipped and the scale is halved. After SGT_SCALE_GROWTH good steps, the scale is
 * doubled. */
typedef struct sgt_scaler {
    float scale;           /* loss scale; 1 if the precision needs none */
    uint32_t good_steps;   /* good steps since the scale last changed */
    uint64_t skipped;      /* updates skipped since the run began */
    sgt_outliers outliers; /* history of losses and norms, for skip_spikes */
} sgt_scaler;
#define SGT_SCALE_GROWTH 2000

typedef struct sgt_memory_kind {
    const char *name; /* "weights", "gradients", "moments", "activations", "head", "data", ... */
    uint64_t bytes;
} sgt_memory_kind;
#define SGT_MEMORY_KINDS 16

/* Type of matrices and activations. Master weights, moments, gradients, LayerNorm, softmax, loss
 * and update are float32 with every precision. */
typedef enum sgt_precision {
    SGT_PRECISION_UNDECIDED = -1, /* before the device is known; never in a backend */
    SGT_PRECISION_FP32,
    SGT_PRECISION_TF32,
    SGT_PRECISION_BF16,
    SGT_PRECISION_FP16
} sgt_precision;

/* What the backward pass recomputes instead of keeping it from the forward pass: nothing; the
 * outputs of GELU and LayerNorm; or a whole block from its input. The results are the same to the
 * bit. */
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

/* ---- variants ---- */

/* Alternative methods for parts of a CUDA step. Variants that made a step faster on a GPU are on by
 * default; --variant chooses others. With any set of variants a step is correct within the same
 * error bounds, but each variant may change the bits of results.
 *
 *     uint32_t set;
 *     if (sgt_variants_parse(&set, "attention-hopper", &err) < 0) ...;
 *     if (set & SGT_VARIANT_ATTENTION_HOPPER) ...; */

/* Bits of the variants, in the order of the table in backend.c, which has their names. */
enum {
    SGT_VARIANT_ATTENTION_HOPPER = 1 << 0,
    SGT_VARIANT_HEAD_CHUNKS = 1 << 1,
    SGT_VARIANT_BIAS_ROOM = 1 << 2,
    SGT_VARIANT_NORM_BIAS = 1 << 3,
    SGT_VARIANTS = 4, /* number of variants */
    /* The variants that are on by default: those that made a step faster on an H100
     * (tests/gpu-results). */
    SGT_VARIANTS_DEFAULT = SGT_VARIANT_ATTENTION_HOPPER
};

typedef struct sgt_variant {
    const char *name, *what; /* name: name for --variant; what: one line of description */
} sgt_variant;

extern const sgt_variant sgt_variants[SGT_VARIANTS]; /* bit i of a set is sgt_variants[i] */

/* Parse names of variants separated by commas, or `all`, `none`, `default`. Returns SGT_EUSAGE for
 * an unknown word; the message lists the known words. */
int sgt_variants_parse(uint32_t *set, const char *words, sgt_error *err);

/* Write the names of a set's variants, separated by commas, in the table's order; or "none". Writes
 * at most SGT_VARIANTS_TEXT bytes and returns `out`. */
#define SGT_VARIANTS_TEXT 256
char *sgt_variants_words(char out[SGT_VARIANTS_TEXT], uint32_t set);

/* ---- live memory: which bytes are in use in each part of a step. A backend's memory is laid out
 * once and never moves. A buffer is live (in use) from the part of a step that writes it to the
 * last part that reads what was written. Memory kept across steps (weights, moments) is always
 * live. The backend declares the live parts next to its layout, and a test verifies them: with
 * options.scrub all memory that is not live is overwritten after each part, and the results must
 * stay the same to the bit.
 *
 * The parts of a micro-step of a model of L layers, in their order:
 *     0 embeddings forward, 1 .. L layer forward, L + 1 head and loss, L + 2 .. 2L + 1 layer
 *     backward from the last to the first, 2L + 2 embeddings backward;
 *     and, after the last micro-step of a step: 2L + 3 update. ---- */

#define SGT_LIVE_KINDS 16 /* largest number of kinds of memory of a backend */

static inline unsigned sgt_part_forward(unsigned layer) { return 1 + layer; }
static inline unsigned sgt_part_head(unsigned layers) { return layers + 1; }
static inline unsigned sgt_part_backward(unsigned layers, unsigned layer)
{
    return 2 * layers + 1 - layer;
}
static inline unsigned sgt_part_embeddings(unsigned layers) { return 2 * layers + 2; }
static inline unsigned sgt_part_update(unsigned layers) { return 2 * layers + 3; }

typedef struct sgt_live_buffer {
    unsigned char *at;
    uint64_t bytes;
    unsigned kind; /* index of its kind of memory, in the backend's order */
} sgt_live_buffer;

/* One use of a buffer: part `first` writes it, and part `last` is the last that reads it. */
typedef struct sgt_live_span {
    uint32_t buffer, first, last;
} sgt_live_span;

/* The buffers and their uses. A zeroed struct is empty; sgt_live_free frees the memory and zeroes
 * the struct. */
typedef struct sgt_live {
    sgt_live_buffer *buffers;
    sgt_live_span *spans;
    size_t count, room, span_count, span_room;
    int failed; /* 1: memory ran out, or a use was declared at an address where no buffer begins */
} sgt_live;

void sgt_live_free(sgt_live *l);

/* sgt_live_buffer_at adds a buffer while memory is laid out, unless it has 0 bytes; `kind` is the
 * kind of memory as which it is counted. sgt_live_during then declares that the buffer is in use
 * from part `first` of a step to part `last`. It may be called several times for one buffer. */
void sgt_live_buffer_at(sgt_live *l, void *at, uint64_t bytes, unsigned kind);
void sgt_live_during(sgt_live *l, const void *at, unsigned first, unsigned last);

/* sgt_live_within returns whether a buffer is in use at some time during a part, sgt_live_after
 * whether it is still in use when the part has ended. */
int sgt_live_within(const sgt_live *l, uint32_t buffer, unsigned part);
int sgt_live_after(const sgt_live *l, uint32_t buffer, unsigned part);

/* For each kind, sum the bytes that are in use at some time during a part (`within`), and those
 * still in use when the part has ended (`after`). */
void sgt_live_count(const sgt_live *l, unsigned part, uint64_t within[SGT_LIVE_KINDS],
                    uint64_t after[SGT_LIVE_KINDS]);

/* ---- options and calls ---- */

/* The options of a backend. Many of them are options of a run, which the command line writes to the
 * member `step` of its settings (config.h). sgt_config_step and the trainer fill in the others. */
typedef struct sgt_backend_options {
    sgt_model model;
    sgt_optim optim;
    uint32_t batch, seq; /* batch: rows of a micro-step on this rank; seq: tokens per row, T */
    /* micro-steps per step, by which dropout numbers the rows of a step; 0 means 1 */
    uint32_t accum;
    int threads; /* CPU threads, at least 1 */
    sgt_notice notice;
    sgt_notice detail; /* called with details that few users want */
    sgt_precision precision;
    sgt_recompute recompute;
    /* sgt_recompute of each layer, used only during open; NULL: `recompute` for all */
    const uint8_t *recompute_at;
    /* skip updates whose loss or gradient norm is more than this many standard deviations above the
     * usual (outliers.h); 0: skip none */
    double skip_spikes;
    double loss_scale; /* initial loss scale in fp16; 0 means 65536 */
    /* probability of dropout on embeddings, attention and both residual branches
     * (kernels/dropout.h) */
    double dropout;
    uint64_t seed; /* seed of dropout's random numbers */
    int ignoring;  /* 1: targets with the id `ignore` have no loss */
    int32_t ignore;
    /* 1: attention does not cross from one document of a row to another. A document begins at the
     * index in rows.starts, or without that array, at the id `eot`; the first one begins at the
     * row's start. Positions are still counted from the row's start. */
    int documents;
    int32_t eot;
    sgt_attention attention;
    /* Switches that turn a technique off, to measure its gain. A CPU supports only no_overlap,
     * which turns off deferred updates. */
    int no_fuse, no_graphs, no_overlap, no_pad_vocab, deterministic;
    uint32_t variants; /* set of SGT_VARIANT_*, for CUDA */
    /* Strings used only during open. `cache`: folder that keeps timing results by device and shape,
     * created if missing; NULL: none. `choices`: if `deterministic` is set, the algorithms that
     * this run chose by timing before it was resumed (backend.choices). */
    const char *cache, *choices;
    /* CUDA: 1: wait after each launch, so that an error names its kernel; graphs are then
     * disabled */
    int sync_kernels;
    /* verdicts of the self-check, used only during open; paths that it rejected are not used; NULL:
     * all paths may be used */
    const sgt_verdicts *verdicts;
    /* 1: do not check the results of the algorithms for matrix products that timing chose */
    int unverified;
    uint32_t card; /* device number for a backend without ranks, for the self-check */
    /* for the self-check: 1: time nothing at open. Matrix products then use the first algorithm
     * that the heuristics offer, and the peak is not measured */
    int untimed;
    /* for tests: 1: after each part of a step, overwrite all memory that is no longer in use
     * (sgt_live) */
    int scrub;
    /* trace that records the parts of a step (trace.h), valid until close; NULL: none */
    struct sgt_trace *trace;
    /* The ranks that share a step, valid until close; NULL: none. Rank r of n gets rows r, r + n,
     * and so on of each micro-step. All ranks must make the same calls in the same order: open, put
     * (with the same floats), get (between steps; every rank gets the whole tensor), micro_step,
     * update, metrics (which cover all ranks) and eval (which covers only this rank's rows). */
    sgt_ranks *ranks;
} sgt_backend_options;

/* Return what the backward pass of `layer` recomputes. */
static inline sgt_recompute sgt_recompute_at(const sgt_backend_options *o, size_t layer)
{
    return o->recompute_at ? (sgt_recompute)o->recompute_at[layer] : o->recompute;
}

typedef struct sgt_batch {
    /* (batch, T) each: the tokens, and for each token the one after it. A negative target has no
     * loss */
    const int32_t *inputs;
    int32_t *targets;
    /* (batch, T), with document_mask: index in the row of the first token of each position's
     * document. NULL: the backend finds documents by the id `eot`. The array is read before the
     * call returns. */
    const int32_t *starts;
    /* Arrays that eval fills in, (batch, T) each; NULL: not wanted. `losses`: loss of each target;
     * 0 for a target without a loss. `greedy`: 1 if no id has a larger logit than the target, else
     * 0; undefined for a target without a loss. */
    float *losses;
    uint8_t *greedy;
} sgt_batch;

/* Write to starts (batch, T) the index in the row at which each position's document begins: copy
 * rows->starts, or if that is NULL, find documents by the id `eot`. */
static inline void sgt_batch_starts(const sgt_batch *rows, size_t batch, size_t T, int32_t eot,
                                    int32_t *starts)
{
    if (rows->starts) memcpy(starts, rows->starts, batch * T * sizeof *starts);
    for (size_t i = 0; i < batch * T && !rows->starts; i++) {
        size_t t = i % T;
        starts[i] = rows->inputs[i] == eot ? (int32_t)t : t ? starts[i - 1] : 0;
    }
}

typedef struct sgt_backend sgt_backend;
struct sgt_backend {
    const char *name; /* "cpu" */
    /* name of the kernels, such as "avx512"; the bits of results depend on it and on `library` */
    const char *level;
    const char *library; /* library of matrix products: "own matrix products", "cuBLASLt ..." */
    /* delay of metrics, in steps: the metrics of step s can be read after step s + lag was queued;
     * 0 on a CPU */
    unsigned lag;
    /* number of calls for which rows must stay valid: when micro_step returns, the memory of the
     * rows passed `hold` calls before may be reused; 0 on a CPU */
    unsigned hold;
    /* allocator for the loader's rows; NULL: any memory may be used */
    void *(*pinned_alloc)(void *ctx, size_t bytes);
    void (*pinned_free)(void *ctx, void *p);
    void *pinned_ctx;

    void (*close)(sgt_backend *b); /* free everything, including b */

    /* Copy floats first .. first + count - 1 of a tensor to the backend's memory (put), or from it
     * (get). */
    int (*put)(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
               const float *from, sgt_error *err);
    int (*get)(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, float *to,
               sgt_error *err);

    /* Run the forward and backward pass over `rows`, which are micro-step `micro` (from 0) of step
     * `step`. The gradients of `scale` times the losses are added up until update. */
    int (*micro_step)(sgt_backend *b, uint64_t step, uint32_t micro, const sgt_batch *rows,
                      double scale, sgt_error *err);

    /* End step `step` (from 0): replace the factor `scale` of the gradients by 1 / (number of
     * targets in the step), clip them, update the parameters, and clear the gradients. */
    int (*update)(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
    int (*metrics)(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err);

    /* Compute the sum of losses and the number of targets over `rows`, without dropout. Call it
     * only between steps. */
    int (*eval)(sgt_backend *b, const sgt_batch *rows, double *loss, uint64_t *targets,
                sgt_error *err);

    /* Set or get the state of the loss scaler and of spike detection, for checkpoints. Call them
     * only between steps. NULL: the backend does not support it. */
    void (*put_scaler)(sgt_backend *b, uint64_t step, const sgt_scaler *s);
    int (*get_scaler)(sgt_backend *b, sgt_scaler *s, sgt_error *err);

    /* List the memory that the backend holds, by kind; return the number of kinds. */
    size_t (*memory)(const sgt_backend *b, sgt_memory_kind kinds[SGT_MEMORY_KINDS]);
    /* For each of these kinds, in the same order, store the bytes in use during part `part` of a
     * step (sgt_live), and after it. `again`: 1 in all micro-steps of a step but the first. NULL:
     * not supported. */
    void (*live)(const sgt_backend *b, unsigned part, int again, uint64_t within[SGT_LIVE_KINDS],
                 uint64_t after[SGT_LIVE_KINDS]);
    /* text that names the algorithms of matrix products, for state.json; NULL: none */
    const char *choices;
    /* advice for the case that gradients are not finite although losses are, which names the
     * attention in use; NULL: none */
    const char *attention;

    /* Peak operations per second of the device in this precision: peak_flops as measured with
     * matrix products, datasheet_flops from its datasheet; 0: unknown. */
    double peak_flops, datasheet_flops;
    /* device and precision of the two peaks, such as "NVIDIA H200, bf16"; NULL if both are 0 */
    const char *peak_name;
    /* number of kernel launches of a forward pass and of a step; 0 before the first one */
    unsigned launches_forward, launches_step;
    /* bytes of memory of a device that has its own; 0: the backend uses the machine's memory */
    uint64_t memory_total;
};

/* Option words of the enumerations above, in the same order; each array ends with NULL. */
extern const char *const sgt_precision_words[], *const sgt_recompute_words[],
                                                    *const sgt_attention_words[];

/* Open a CPU backend. Returns SGT_ENOMEM with a message that states how much memory is needed, or
 * SGT_EUNSUPPORTED if an option (which the message names) is not available on a CPU. */
int sgt_cpu_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);

/* Estimate the memory that a CPU backend with these options would hold, by kind and in total,
 * without allocating it. */
int sgt_cpu_backend_estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                             size_t *count, uint64_t *bytes, sgt_error *err);

/* Initialize the parameters as GPT-2 does: weights from a normal distribution with sigma 0.02,
 * projections into the residual stream divided by sqrt(2 * layers), biases 0, LayerNorm weights 1,
 * moments 0. Each number depends only on seed, tensor and element. */
int sgt_init_parameters(sgt_backend *b, const sgt_model *m, uint64_t seed, int threads,
                        sgt_error *err);

#endif
