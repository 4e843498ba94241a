/* backend.h: the interface between the training loop and its backends. A backend runs the training
 * steps: the CPU backend, or the CUDA backend (libsgt-cuda.so).
 *
 *     sgt_backend *b;
 *     if (sgt_cpu_backend_open(&b, &options, &err) < 0) ...;
 *     sgt_init_parameters(b, &model, seed, threads, &err);    // or sgt_checkpoint_load_model
 *     for (step = 0; step < steps; step++) {
 *         for (micro = 0; micro < micro_steps; micro++)
 *             b->micro_step(b, step, micro, rows, 1.0 / targets_of_a_step, &err);
 *         b->update(b, step, lr, &err);
 *         b->metrics(b, step, &m, &err);
 *     }
 *     b->close(b);
 *
 * All calls on a backend must come from one thread. A call that returns int returns 0 on success.
 * On failure it returns a negative SGT_E* and fills in *err. */
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

/* ---- optimizer, learning rate ---- */

/* SGT_MUON updates the weight matrices in transformer blocks with Muon (kernels/muon.h), and all
 * other tensors with AdamW. */
typedef enum sgt_optim_kind { SGT_ADAMW, SGT_SGD, SGT_MUON } sgt_optim_kind;

/* Options of the optimizer, most of which the command line sets. An update computes in float32, so
 * fields of type double are rounded to float before use. */
typedef struct sgt_optim {
    sgt_optim_kind kind;
    /* hyperparameters of AdamW; with SGT_MUON, they apply to the tensors that AdamW updates */
    float beta1, beta2, eps;
    /* format in which AdamW stores its moments: 1: bfloat16 (see kernels/moments.h); 0: float32 */
    int bf16_moments;
    /* momentum of SGD; SGD's momentum buffer uses the memory of AdamW's first moments */
    double momentum;
    int nesterov;
    double weight_decay; /* decoupled weight decay, applied only to tensors with two dimensions */
    /* Maximum norm of the gradient of all parameters together; 0: no clipping. If the norm is
     * larger, the gradients are scaled down so that their norm equals this maximum. With Muon, the
     * norm also includes the matrices that Muon updates, but their gradients are not scaled down,
     * because Muon normalizes its updates. */
    double grad_clip;
} sgt_optim;

/* Return the factor (at most 1) for gradient clipping: gradients whose norm is `norm`, multiplied
 * by this factor, have a norm of at most o->grad_clip. */
double sgt_optim_clip(const sgt_optim *o, double norm);

/* Return the constants of one AdamW update. `step`: number of updates done so far. `decay`: 1 if
 * the tensor has two dimensions, otherwise 0; weight decay applies only to tensors with two
 * dimensions. */
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
    /* warmup: number of warm-up steps, possibly more than the run has; steps: number of steps in
     * the run */
    uint64_t warmup, steps;
    /* first: step at which the schedule begins, normally 0. If a resumed run has a new schedule, it
     * is the first step after the resume, at which a new warm-up begins. from: learning rate at the
     * beginning of this new warm-up, which is the rate of the step before `first`. */
    uint64_t first;
    double from;
} sgt_schedule;

/* names of the schedules in the order of sgt_schedule_kind, ending with NULL: "cosine", "linear",
 * "constant", "wsd" */
extern const char *const sgt_schedule_words[];

/* Return the learning rate at step s (from 0) of a run of S = c->steps steps. During the warm-up it
 * is lr*(s+1)/warmup. After the warm-up it depends on the schedule:
 * - "cosine", "linear": falls from lr at step `warmup` to min_lr at step S
 * - "constant": stays lr
 * - "wsd" ("warm-up, stable, decay"): stays lr, and falls linearly to min_lr in the last fifth of
 *   the run
 *
 * If c->first is not 0, the warm-up begins at step c->first and raises the rate from c->from to lr,
 * and "the run" means only the steps from c->first on. */
double sgt_schedule_lr(const sgt_schedule *c, uint64_t s);

/* ---- a step ---- */

typedef enum sgt_state { SGT_PARAMETERS, SGT_MOMENT1, SGT_MOMENT2, SGT_GRADIENTS } sgt_state;

typedef struct sgt_step_metrics {
    double loss; /* mean loss over all targets of the step that are not ignored */
    /* norm of the mean gradient, before clipping and without the factor of the loss scale */
    double grad_norm;
    double loss_scale; /* loss scale of this step; 1 if the precision does not need loss scaling */
    /* number of updates skipped since the run began, because of an overflow or of a spike in the
     * loss or the gradient norm */
    uint64_t skipped;
    uint64_t spikes; /* number of updates skipped because of a spike since the run began */
} sgt_step_metrics;

/* State of dynamic loss scaling and of spike detection. The loss scale starts at
 * options.loss_scale. In a step with an infinite or NaN gradient, the update is skipped and the
 * scale is halved. After SGT_SCALE_GROWTH steps in a row without such gradients, the scale is
 * doubled. */
typedef struct sgt_scaler {
    float scale;         /* current loss scale; 1 if the precision needs no scaling */
    uint32_t good_steps; /* number of steps with finite gradients since the scale last changed */
    uint64_t skipped;    /* number of updates skipped since the run began */
    /* history of losses and gradient norms, with which options.skip_spikes detects spikes */
    sgt_outliers outliers;
} sgt_scaler;
#define SGT_SCALE_GROWTH 2000

typedef struct sgt_memory_kind {
    /* name of this kind of memory, such as "weights", "gradients", "moments", "activations" or
     * "data" */
    const char *name;
    uint64_t bytes;
} sgt_memory_kind;
#define SGT_MEMORY_KINDS 16

/* Number format of matrices and activations. Whatever the precision, master weights, gradients,
 * LayerNorm, softmax, the loss and the update use float32, and so do moments unless
 * optim.bf16_moments is set. */
typedef enum sgt_precision {
    SGT_PRECISION_UNDECIDED = -1, /* value before the device is known; never passed to a backend */
    SGT_PRECISION_FP32,
    SGT_PRECISION_TF32,
    SGT_PRECISION_BF16,
    SGT_PRECISION_FP16
} sgt_precision;

/* Which activations the backward pass recomputes, instead of reading them from memory: none; the
 * outputs of GELU and LayerNorm; or all activations of a block, from the input of the block.
 * Recomputing saves memory, and gives bit-identical results. */
typedef enum sgt_recompute {
    SGT_RECOMPUTE_NONE,
    SGT_RECOMPUTE_GELU,
    SGT_RECOMPUTE_BLOCK
} sgt_recompute;

typedef enum sgt_attention {
    SGT_ATTENTION_AUTO,
    SGT_ATTENTION_OWN, /* with wgmma on sm_90, else with mma.sync */
    SGT_ATTENTION_MMA, /* with mma.sync on every GPU */
    SGT_ATTENTION_CUDNN,
    SGT_ATTENTION_NAIVE
} sgt_attention;

/* ---- variants ---- */

/* Variants: alternative methods for some computations of a training step with CUDA that no GPU has
 * measured yet. Once a GPU has, a variant becomes part of every step or is deleted. The
 * same error bounds hold for every set of variants, but the results may differ in their last bits.
 *
 *     uint32_t set;
 *     if (sgt_variants_parse(&set, "head-chunks", &err) < 0) ...;
 *     if (set & SGT_VARIANT_HEAD_CHUNKS) ...; */

/* One bit for each variant. Bit i stands for row i of the table sgt_variants in backend.c. */
enum {
    SGT_VARIANT_HEAD_CHUNKS = 1 << 0,
    SGT_VARIANT_BIAS_ROOM = 1 << 1,
    SGT_VARIANT_NORM_BIAS = 1 << 2,
    SGT_VARIANT_EARLY_LAUNCH = 1 << 3,
    SGT_VARIANTS = 4,        /* number of variants */
    SGT_VARIANTS_DEFAULT = 0 /* set of the variants that are on by default */
};

typedef struct sgt_variant {
    /* name: name of the variant on the command line; what: one-line description of the variant */
    const char *name, *what;
} sgt_variant;

extern const sgt_variant sgt_variants[SGT_VARIANTS]; /* bit i of a set is sgt_variants[i] */

/* Set *set to the variants that `words` names: either variant names separated by commas, or one of
 * `all`, `none` and `default`. If a name is unknown, return SGT_EUSAGE with a message that lists
 * the known names. */
int sgt_variants_parse(uint32_t *set, const char *words, sgt_error *err);

/* Write the names of the variants in `set` to `out`, separated by commas and in the order of the
 * table sgt_variants; for an empty set write "none". Write at most SGT_VARIANTS_TEXT bytes. Return
 * `out`. */
#define SGT_VARIANTS_TEXT 256
char *sgt_variants_words(char out[SGT_VARIANTS_TEXT], uint32_t set);

/* ---- live memory ---- */

/* Live memory: which bytes are in use during each part of a training step. A backend allocates all
 * buffers once, and no buffer moves. A buffer is live (in use) from the part that writes its data
 * to the last part that reads the data. Memory that keeps its content across steps (weights,
 * moments) is always live. Each backend declares, next to its memory layout, when each buffer is
 * live. A test checks these declarations: with options.scrub, all memory that is not live is
 * overwritten after each part, and the results must stay bit-identical.
 *
 * The parts of a step with L layers are numbered in the order in which they run. Each micro-step
 * has the parts 0 to 2L + 2; the last micro-step is followed by part 2L + 3:
 *     0               embeddings, forward
 *     1 .. L          layers, forward
 *     L + 1           head (logits) and loss
 *     L + 2 .. 2L + 1 layers, backward, from the last layer to the first
 *     2L + 2          embeddings, backward
 *     2L + 3          update */

#define SGT_LIVE_KINDS 16 /* maximum number of kinds of memory in a backend */

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
    /* kind of memory that holds the buffer, as an index in the list that sgt_backend.memory fills
     * in */
    unsigned kind;
} sgt_live_buffer;

/* A period during which a buffer is in use: from part `first` of a step, which writes the data, to
 * part `last`, the last part that reads the data. `buffer` is an index in sgt_live.buffers. */
typedef struct sgt_live_span {
    uint32_t buffer, first, last;
} sgt_live_span;

/* A list of buffers, and of the periods during which each buffer is in use. A struct of zeros is an
 * empty list. sgt_live_free frees the arrays and sets the struct to zeros. */
typedef struct sgt_live {
    sgt_live_buffer *buffers;
    sgt_live_span *spans;
    size_t count, room, span_count, span_room;
    /* 1: the list is incomplete, because memory ran out or because sgt_live_during was called with
     * an address at which no buffer begins; 0: no error so far */
    int failed;
} sgt_live;

void sgt_live_free(sgt_live *l);

/* sgt_live_buffer_at adds a buffer of `bytes` bytes at address `at` to the list, unless `bytes` is
 * 0. `kind` is the index of the buffer's kind of memory. sgt_live_during declares that this buffer
 * is in use from part `first` to part `last` of a step; call it once for each such period. */
void sgt_live_buffer_at(sgt_live *l, void *at, uint64_t bytes, unsigned kind);
void sgt_live_during(sgt_live *l, const void *at, unsigned first, unsigned last);

/* sgt_live_within returns whether a buffer is in use during part `part` of a step. sgt_live_after
 * returns whether the buffer is still in use after that part has ended. `buffer` is an index in
 * l->buffers. */
int sgt_live_within(const sgt_live *l, uint32_t buffer, unsigned part);
int sgt_live_after(const sgt_live *l, uint32_t buffer, unsigned part);

/* For each kind of memory, set within[kind] to the number of bytes in use during part `part` of a
 * step, and after[kind] to the number of bytes still in use after that part has ended. */
void sgt_live_count(const sgt_live *l, unsigned part, uint64_t within[SGT_LIVE_KINDS],
                    uint64_t after[SGT_LIVE_KINDS]);

/* ---- options and calls ---- */

/* Options of a backend. The command line writes many of these fields directly, in the field `step`
 * of sgt_config (config.h). sgt_config_step and the trainer fill in the other fields. */
typedef struct sgt_backend_options {
    sgt_model model;
    sgt_optim optim;
    uint32_t batch, seq; /* batch: rows per micro-step on this rank; seq: tokens per row, T */
    /* number of micro-steps per step, at least 1 (0 also means 1); used only for dropout, whose
     * mask for a row depends on the index of the row among all rows of the step */
    uint32_t accum;
    int threads; /* CPU threads, at least 1 */
    sgt_notice notice;
    sgt_notice detail; /* callback for detailed messages, which few users need */
    sgt_precision precision;
    sgt_recompute recompute;
    /* array that holds, for each layer, an sgt_recompute as a byte; the backend reads it only while
     * it opens; NULL: all layers use `recompute` */
    const uint8_t *recompute_at;
    /* Threshold of spike detection, in standard deviations. If the loss or the gradient norm of a
     * step exceeds its mean over recent steps by more than this, the update is skipped (see
     * outliers.h). 0: no update is skipped because of a spike. */
    double skip_spikes;
    double loss_scale; /* initial loss scale for fp16; 0 means 65536 */
    /* probability with which dropout zeroes an element: in the embeddings, in attention and in both
     * residual branches (kernels/dropout.h) */
    double dropout;
    uint64_t seed; /* seed of dropout's random numbers */
    /* whether a target id is ignored: 1: targets with the id `ignore` do not contribute to the
     * loss; 0: all targets contribute */
    int ignoring;
    int32_t ignore;
    /* 1: tokens attend only to tokens of the same document within the row; 0: to all earlier tokens
     * of the row. The array `starts` in sgt_batch tells where each document begins. If it is NULL,
     * a document begins at the start of the row and at each token whose id is `eot` (end of text).
     * In either case, position embeddings count from the start of the row. */
    int documents;
    int32_t eot;
    sgt_attention attention;
    /* Each switch except `deterministic` turns off one technique, so that benchmarks can measure
     * its effect. deterministic: 1 if repeated runs must give bit-identical results on CUDA. A CPU
     * backend supports only no_overlap, which means that no update is deferred. */
    int no_fuse, no_graphs, no_overlap, no_pad_vocab, deterministic;
    uint32_t variants; /* set of SGT_VARIANT_*, for CUDA */
    /* Two strings that the backend reads only while it opens.
     *
     *   cache    folder in which the measured peak speed of a CPU is stored for later runs; created
     *            if missing; NULL: the speed is not stored
     *   choices  matrix-product algorithms that a resumed run used before, as the text of
     *            sgt_backend.choices; the backend uses them again if `deterministic` is set */
    const char *cache, *choices;
    /* 1: wait for each CUDA kernel after its launch, so that an error message names the kernel that
     * failed; this disables CUDA graphs */
    int sync_kernels;
    /* Results of the self-check, which tests each path (alternative implementation) of the CUDA
     * backend. The backend does not use a path that failed. NULL: there was no self-check, so the
     * backend may use all paths. The backend reads this only while it opens. */
    const sgt_verdicts *verdicts;
    /* 1: do not check the results of the matrix-product algorithms that timing has selected; 0:
     * check them */
    int unverified;
    uint32_t card; /* index of the CUDA device if there are no ranks */
    /* 1: the self-check opens this backend. In this case nothing is timed: matrix products use the
     * first algorithm that the library's heuristics offer, and the peak speed is not measured. The
     * backend does not clear cuDNN's sums of dQ, so that the check shows whether cuDNN clears them
     * itself. */
    int checking;
    /* 1: after each part of a step, overwrite all memory that is no longer in use (see sgt_live);
     * used only in tests */
    int scrub;
    /* trace (trace.h) in which the backend records the parts of each step; must stay open until the
     * backend is closed; NULL: no trace */
    struct sgt_trace *trace;
    /* The ranks (processes) that share the rows of each step; NULL: this process trains alone. The
     * ranks must stay open until the backend is closed. Of n ranks, rank r processes rows r, r + n,
     * r + 2n, ... of each micro-step. All ranks must make the following calls in the same order:
     * - open, micro_step and update
     * - put, with the same floats on all ranks
     * - get, only between steps; every rank gets the complete tensor
     * - metrics, which cover the rows of all ranks
     * - eval, which covers only the rows of the calling rank */
    sgt_ranks *ranks;
} sgt_backend_options;

/* Return which activations of layer `layer` the backward pass recomputes. */
static inline sgt_recompute sgt_recompute_at(const sgt_backend_options *o, size_t layer)
{
    return o->recompute_at ? (sgt_recompute)o->recompute_at[layer] : o->recompute;
}

typedef struct sgt_batch {
    /* inputs: (batch, T) array of token ids. targets: (batch, T) array with the id to predict at
     * each position, that is, the id of the next token; a negative value means that the position
     * has no loss. */
    const int32_t *inputs;
    int32_t *targets;
    /* (batch, T) array, used if attention stays within documents: for each token, the index in the
     * row of the first token of its document. The backend copies the array before the call returns.
     * NULL: a document begins at the start of each row and at each token whose id is
     * options.eot. */
    const int32_t *starts;
    /* losses: (batch, T) array that eval fills with the loss of each target, 0 for a target without
     * a loss. greedy: (batch, T) array that eval fills with 1 if no id has a larger logit than the
     * target, otherwise 0; undefined for a target without a loss. Each may be NULL. */
    float *losses;
    uint8_t *greedy;
} sgt_batch;

/* Fill the (batch, T) array `starts`: for each token, the index in the row of the first token of
 * its document. Copy rows->starts; if that is NULL, a document begins at the start of each row and
 * at each token with the id `eot`. */
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
    /* name of the CPU or GPU kernels in use, such as "avx512"; results are bit-identical only with
     * equal `level` and equal `library` */
    const char *level;
    /* names of the libraries in use, such as "own matrix products", or "CUDA 13.0, cuBLASLt 13.1.0,
     * cuDNN 9.19.0" */
    const char *library;
    /* number of steps by which metrics are delayed: the metrics of step s are available only after
     * step s + lag has been started; 0 on a CPU */
    unsigned lag;
    /* number of further micro_step calls after which the caller may change or free the memory of
     * `rows`, because the device may still be copying it after micro_step returns; 0 on a CPU */
    unsigned hold;
    /* function with which the loader must allocate its memory for rows; NULL: any memory will do */
    void *(*pinned_alloc)(void *ctx, size_t bytes);
    void (*pinned_free)(void *ctx, void *p);
    void *pinned_ctx;

    void (*close)(sgt_backend *b); /* free everything, including b */

    /* put copies the `count` floats at `from` to elements first .. first + count - 1 of tensor
     * number `tensor` in the backend. get copies such elements to `to`. `what` selects parameters,
     * moments or gradients. */
    int (*put)(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
               const float *from, sgt_error *err);
    int (*get)(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, float *to,
               sgt_error *err);

    /* Run the forward and backward pass over `rows`, the rows of micro-step `micro` (from 0) of
     * step `step`. Add `scale` times the gradients of the loss to the accumulated gradients, which
     * `update` uses and resets. */
    int (*micro_step)(sgt_backend *b, uint64_t step, uint32_t micro, const sgt_batch *rows,
                      double scale, sgt_error *err);

    /* Finish step `step` (from 0): convert the accumulated gradients to means over the step's
     * targets, clip them, update the parameters with learning rate `lr`, and reset the gradients to
     * 0. */
    int (*update)(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
    int (*metrics)(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err);

    /* Set *loss to the sum of the losses of all targets in `rows`, computed without dropout, and
     * *targets to the number of targets that have a loss. Call this function only between steps. */
    int (*eval)(sgt_backend *b, const sgt_batch *rows, double *loss, uint64_t *targets,
                sgt_error *err);

    /* put_scaler sets, and get_scaler reads, the state of the loss scaler and of spike detection,
     * which is stored in checkpoints. Call these functions only between steps. NULL: the backend
     * has no such state. */
    void (*put_scaler)(sgt_backend *b, uint64_t step, const sgt_scaler *s);
    int (*get_scaler)(sgt_backend *b, sgt_scaler *s, sgt_error *err);

    /* Fill `kinds` with the name and size of each kind of memory that the backend has allocated.
     * Return the number of kinds. */
    size_t (*memory)(const sgt_backend *b, sgt_memory_kind kinds[SGT_MEMORY_KINDS]);
    /* For each kind of memory, in the order that `memory` returns: set within[kind] to the number
     * of bytes in use during part `part` of a step (see sgt_live), and after[kind] to the number of
     * bytes still in use after that part. `again`: 0 for the first micro-step of a step, 1 for a
     * later one. NULL: the backend does not track memory in use. */
    void (*live)(const sgt_backend *b, unsigned part, int again, uint64_t within[SGT_LIVE_KINDS],
                 uint64_t after[SGT_LIVE_KINDS]);
    /* names of the matrix-product algorithms that timing has selected, stored in state.json; NULL:
     * none */
    const char *choices;
    /* advice for the user if gradients are infinite or NaN but losses are finite; names the
     * attention implementation in use; NULL: no such advice */
    const char *attention;

    /* peak speed of the device in this precision, in floating-point operations per second; 0:
     * unknown. peak_flops is measured with matrix products, datasheet_flops comes from the device's
     * datasheet. */
    double peak_flops, datasheet_flops;
    /* device and precision for which the peak speeds hold, such as "NVIDIA H200, bf16"; NULL if
     * neither speed is known */
    const char *peak_name;
    /* number of kernel launches in a forward pass (launches_forward) and in a whole step
     * (launches_step); 0 before the first one */
    unsigned launches_forward, launches_step;
    /* size in bytes of the device's own memory; 0: the device uses the memory of the machine, as a
     * CPU does */
    uint64_t memory_total;
};

/* Words that options accept for the values of sgt_precision, sgt_recompute and sgt_attention. Each
 * array has the order of its enumeration, and ends with NULL. */
extern const char *const sgt_precision_words[], *const sgt_recompute_words[],
                                                    *const sgt_attention_words[];

/* Open a CPU backend and set *out to it. If memory runs out, return SGT_ENOMEM with a message that
 * says how much is needed. If the CPU backend does not support an option, return SGT_EUNSUPPORTED
 * with a message that names the option. */
int sgt_cpu_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);
/* Prefault the n bytes at `p`: write a zero byte to each page, with `threads` threads. The
 * operating system must clear each page at its first use. For the memory of a backend, this takes
 * half of the startup time, so several threads share the work. */
void sgt_cpu_prefault(char *p, size_t n, int threads);

/* Estimate how much memory a CPU backend with these options would allocate, without allocating it.
 * Set `kinds` to the bytes of each kind, *count to the number of kinds, and *bytes to the total. */
int sgt_cpu_backend_estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                             size_t *count, uint64_t *bytes, sgt_error *err);

/* Initialize the parameters as GPT-2 does. Weights are normally distributed with standard deviation
 * 0.02; for projections into the residual stream, this is divided by sqrt(2 * layers). Biases and
 * moments are 0, LayerNorm weights 1. Each parameter depends only on the seed, the tensor and the
 * index of the parameter in the tensor. */
typedef int sgt_init(sgt_backend *b, const sgt_model *m, uint64_t seed, int threads,
                     sgt_error *err);
sgt_init sgt_init_parameters;

#endif
