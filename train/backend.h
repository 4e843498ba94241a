/* backend.h: the interface that the CPU backend and the CUDA backend (libsgt-cuda.so) implement.
 * The training loop calls both backends through it.
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

/* ---- the optimizer and learning-rate schedules ---- */

/* SGT_MUON uses Muon for the matrices in blocks (kernels/muon.h), and AdamW for all other
 * tensors. */
typedef enum sgt_optim_kind { SGT_ADAMW, SGT_SGD, SGT_MUON } sgt_optim_kind;

/* The optimizer's options, most of which the command line sets. Updates compute in float32, so the
 * members of type double are rounded to float before use. */
typedef struct sgt_optim {
    sgt_optim_kind kind;
    /* options of AdamW, which also apply to the tensors that SGT_MUON updates with AdamW */
    float beta1, beta2, eps;
    /* 1: AdamW stores its moments in bfloat16 (kernels/moments.h); 0: in float32 */
    int bf16_moments;
    /* momentum of SGD, whose momentum buffer is stored in place of AdamW's first moments */
    double momentum;
    int nesterov;
    double weight_decay; /* decoupled weight decay, applied only to two-dimensional tensors */
    /* Maximum norm of the gradient of all parameters together. If the norm is larger, the gradients
     * are scaled down to it; 0: no clipping. With Muon, the matrices that Muon updates count in the
     * norm, but only the gradients of the other tensors are scaled down, because Muon normalizes
     * its updates. */
    double grad_clip;
} sgt_optim;

/* Return the factor, at most 1, by which gradients of global norm `norm` must be multiplied so that
 * their norm is at most o->grad_clip. */
double sgt_optim_clip(const sgt_optim *o, double norm);

/* Return the constants of one AdamW update. step: number of updates done so far. decay: 1 if the
 * tensor has two dimensions, because weight decay applies only to such tensors. */
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
    /* first: step at which the schedule begins. It is 0, or the step of the resume if a resumed run
     * has a new schedule, which begins with a new warm-up. from: learning rate at which that
     * warm-up begins, the rate of the step before `first`. */
    uint64_t first;
    double from;
} sgt_schedule;

/* names of the schedules: "cosine", "linear", "constant", "wsd"; then NULL */
extern const char *const sgt_schedule_words[];

/* Return the learning rate at step s (from 0) of a run of S = c->steps steps. During the warm-up it
 * is lr*(s+1)/warmup. After that it depends on the schedule:
 * - "cosine", "linear": from lr at s = warmup to min_lr at s = S
 * - "constant": lr
 * - "wsd" ("warm-up, stable, decay"): lr, then linearly to min_lr over the last fifth of the run
 *
 * A schedule that begins at a later step counts steps from there, and its warm-up goes from `from`
 * to lr. */
double sgt_schedule_lr(const sgt_schedule *c, uint64_t s);

/* ---- a step ---- */

typedef enum sgt_state { SGT_PARAMETERS, SGT_MOMENT1, SGT_MOMENT2, SGT_GRADIENTS } sgt_state;

typedef struct sgt_step_metrics {
    double loss; /* mean loss over the targets of the step that are not ignored */
    /* norm of the averaged gradient, before clipping and without the loss scale */
    double grad_norm;
    double loss_scale; /* loss scale used in the step; 1 if the precision needs none */
    /* number of updates skipped since the run began, because of an overflow or a spike */
    uint64_t skipped;
    uint64_t spikes; /* number of updates skipped since the run began because of a spike */
} sgt_step_metrics;

/* State of dynamic loss scaling and of spike detection. The loss scale starts at
 * options.loss_scale. If a gradient is infinite or NaN, the update is skipped and the scale is
 * halved. After SGT_SCALE_GROWTH steps in a row with finite gradients, the scale is doubled. */
typedef struct sgt_scaler {
    float scale;         /* current loss scale; 1 if the precision needs none */
    uint32_t good_steps; /* number of steps with finite gradients since the scale last changed */
    uint64_t skipped;    /* number of updates skipped since the run began */
    /* history of losses and gradient norms, from which skip_spikes detects spikes */
    sgt_outliers outliers;
} sgt_scaler;
#define SGT_SCALE_GROWTH 2000

typedef struct sgt_memory_kind {
    /* kind of memory: "weights", "gradients", "moments", "activations", "head", "data", ... */
    const char *name;
    uint64_t bytes;
} sgt_memory_kind;
#define SGT_MEMORY_KINDS 16

/* Number format of matrices and activations. With every precision, master weights, moments,
 * gradients, LayerNorm, softmax, loss and update use float32. */
typedef enum sgt_precision {
    SGT_PRECISION_UNDECIDED = -1, /* used until the device is known; never passed to a backend */
    SGT_PRECISION_FP32,
    SGT_PRECISION_TF32,
    SGT_PRECISION_BF16,
    SGT_PRECISION_FP16
} sgt_precision;

/* How much the backward pass recomputes instead of reading it from memory: nothing; the outputs of
 * GELU and LayerNorm; or all activations of a block, from the block's input. Recomputing saves
 * memory and does not change a single bit of the results. */
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

/* Variants: alternative methods for computing some parts of a CUDA step. Variants that made a step
 * faster on a GPU are on by default, and --variant chooses others. A step is correct within the
 * same error bounds with any set of variants, but a variant may change the bits of the results.
 *
 *     uint32_t set;
 *     if (sgt_variants_parse(&set, "attention-hopper", &err) < 0) ...;
 *     if (set & SGT_VARIANT_ATTENTION_HOPPER) ...; */

/* One bit for each variant, in the order of the table sgt_variants in backend.c. */
enum {
    SGT_VARIANT_ATTENTION_HOPPER = 1 << 0,
    SGT_VARIANT_HEAD_CHUNKS = 1 << 1,
    SGT_VARIANT_BIAS_ROOM = 1 << 2,
    SGT_VARIANT_NORM_BIAS = 1 << 3,
    SGT_VARIANTS = 4, /* number of variants */
    /* The variants that are on by default, because they made a step faster on an H100
     * (tests/gpu-results). */
    SGT_VARIANTS_DEFAULT = SGT_VARIANT_ATTENTION_HOPPER
};

typedef struct sgt_variant {
    /* name: name of the variant for --variant; what: its description in one line */
    const char *name, *what;
} sgt_variant;

extern const sgt_variant sgt_variants[SGT_VARIANTS]; /* bit i of a set is sgt_variants[i] */

/* Set *set to the variants named by `words`: names separated by commas, or `all`, `none` or
 * `default`. Return SGT_EUSAGE for an unknown name, with a message that lists the known names. */
int sgt_variants_parse(uint32_t *set, const char *words, sgt_error *err);

/* Write the names of the variants in `set` to `out`, separated by commas and in the order of the
 * table, or "none". Write at most SGT_VARIANTS_TEXT bytes, and return `out`. */
#define SGT_VARIANTS_TEXT 256
char *sgt_variants_words(char out[SGT_VARIANTS_TEXT], uint32_t set);

/* ---- live memory ---- */

/* Live memory: which bytes are in use during each part of a step. A backend allocates its memory
 * once, and no buffer moves. A buffer is live (in use) from the part of a step that writes to it
 * until the last part that reads the data. Memory that keeps its content across steps (weights,
 * moments) is always live. The backend declares, next to its memory layout, when each buffer is
 * live. A test checks these declarations: with options.scrub, all memory that is not live is
 * overwritten after each part, and the results must stay the same to the bit.
 *
 * The parts of a micro-step, in order, for a model of L layers:
 *     0 embeddings forward, 1 .. L layer forward, L + 1 head and loss, L + 2 .. 2L + 1 layer
 *     backward from the last to the first, 2L + 2 embeddings backward;
 *     and, after the last micro-step of a step: 2L + 3 update. */

#define SGT_LIVE_KINDS 16 /* maximum number of kinds of memory that a backend has */

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
    /* index of the buffer's kind of memory in the list that sgt_backend.memory returns */
    unsigned kind;
} sgt_live_buffer;

/* A period during which a buffer is in use: part `first` of the step writes the data, and part
 * `last` is the last part that reads the data. */
typedef struct sgt_live_span {
    uint32_t buffer, first, last;
} sgt_live_span;

/* All buffers, and the periods during which they are in use. A struct that is all zeros is an empty
 * list. sgt_live_free frees the arrays and sets the struct to zeros. */
typedef struct sgt_live {
    sgt_live_buffer *buffers;
    sgt_live_span *spans;
    size_t count, room, span_count, span_room;
    /* 1: out of memory, or sgt_live_during got an address at which no buffer begins; 0: no error so
     * far */
    int failed;
} sgt_live;

void sgt_live_free(sgt_live *l);

/* sgt_live_buffer_at adds a buffer, unless it is empty, to the kind of memory with index `kind`.
 * Call it when memory is laid out. sgt_live_during then declares that the buffer is in use from
 * part `first` to part `last` of a step. Call it once for each period during which the buffer is in
 * use. */
void sgt_live_buffer_at(sgt_live *l, void *at, uint64_t bytes, unsigned kind);
void sgt_live_during(sgt_live *l, const void *at, unsigned first, unsigned last);

/* sgt_live_within returns whether a buffer is in use at any time during a part of a step.
 * sgt_live_after returns whether the buffer is still in use after that part has ended. */
int sgt_live_within(const sgt_live *l, uint32_t buffer, unsigned part);
int sgt_live_after(const sgt_live *l, uint32_t buffer, unsigned part);

/* For each kind of memory, set within[kind] to the number of bytes that are in use at any time
 * during part `part` of a step, and after[kind] to the number of bytes that are still in use when
 * the part has ended. */
void sgt_live_count(const sgt_live *l, unsigned part, uint64_t within[SGT_LIVE_KINDS],
                    uint64_t after[SGT_LIVE_KINDS]);

/* ---- options and calls ---- */

/* The options of a backend. The command line writes many of them directly, as member `step` of the
 * run's settings (config.h). sgt_config_step and the trainer fill in the others. */
typedef struct sgt_backend_options {
    sgt_model model;
    sgt_optim optim;
    uint32_t batch, seq; /* batch: rows per micro-step on this rank; seq: tokens per row, T */
    /* Micro-steps per step; 0 means 1. The backend needs it only for dropout, whose mask for a
     * row depends on the row's index among all rows of the step. */
    uint32_t accum;
    int threads; /* CPU threads, at least 1 */
    sgt_notice notice;
    sgt_notice detail; /* callback for detailed messages that few users want to see */
    sgt_precision precision;
    sgt_recompute recompute;
    /* array with an sgt_recompute for each layer, read only while the backend opens; NULL: all
     * layers use `recompute` */
    const uint8_t *recompute_at;
    /* Limit for spikes. If the loss or the gradient norm of a step exceeds its average over recent
     * steps by more than this many standard deviations, the update is skipped (outliers.h). 0: no
     * update is skipped. */
    double skip_spikes;
    double loss_scale; /* initial loss scale for fp16; 0 means 65536 */
    /* probability of dropout in the embeddings, in attention and in both residual branches
     * (kernels/dropout.h) */
    double dropout;
    uint64_t seed; /* seed of dropout's random numbers */
    /* 1: targets with the id `ignore` do not contribute to the loss; 0: all targets do */
    int ignoring;
    int32_t ignore;
    /* 1: a token attends only to tokens of its own document within the row. rows.starts tells
     * where each document begins. If rows.starts is NULL, documents begin at the start of the
     * row and at each token whose id is `eot`, the end-of-text id. Position embeddings still count
     * from the start of the row. */
    int documents;
    int32_t eot;
    sgt_attention attention;
    /* Switches that turn off one technique each, so that benchmarks can measure what the technique
     * gains. A CPU backend supports only no_overlap, with which no update is deferred. */
    int no_fuse, no_graphs, no_overlap, no_pad_vocab, deterministic;
    uint32_t variants; /* set of SGT_VARIANT_*, for CUDA */
    /* Two strings that need to be valid only until the backend is open.
     *
     *   cache    folder that stores the measured peak speed of a CPU for later runs; created if
     *            missing; NULL: no cache
     *   choices  for a resumed run, the matrix-product algorithms that it used before (text of
     *            sgt_backend.choices); used again if `deterministic` is set */
    const char *cache, *choices;
    /* 1: with CUDA, wait for each kernel after its launch, so that an error message names the
     * kernel. This disables CUDA graphs. */
    int sync_kernels;
    /* The self-check's verdicts on the paths (alternative implementations) of the CUDA backend. The
     * backend does not use a path that failed. NULL: no self-check was made, so all paths may be
     * used. Read only while the backend opens. */
    const sgt_verdicts *verdicts;
    /* 1: do not check the results of the matrix-product algorithms that are chosen by timing */
    int unverified;
    uint32_t card; /* index of the CUDA device to use without ranks; only the self-check sets it */
    /* 1: the self-check opens the backend. In this case, nothing is timed: matrix products use the
     * first algorithm that the library's heuristics offer, and the peak speed is not measured.
     * cuDNN must set the sums in its workspace to 0 itself. */
    int checking;
    /* 1: after each part of a step, overwrite all memory that is not in use any more, for tests
     * (see sgt_live) */
    int scrub;
    /* trace to which the parts of each step are added (trace.h); must stay open until the backend
     * is closed; NULL: no trace */
    struct sgt_trace *trace;
    /* The ranks among which the rows of a step are divided; NULL: no ranks. They must stay open
     * until the backend is closed. Of n ranks, rank r gets rows r, r + n, r + 2n, ... of each
     * micro-step. All ranks must make the same calls in the same order:
     * - open, micro_step and update
     * - put, with the same floats
     * - get, between steps; every rank gets the complete tensor
     * - metrics, over the rows of all ranks
     * - eval, over only this rank's rows */
    sgt_ranks *ranks;
} sgt_backend_options;

/* Return which activations the backward pass of layer `layer` recomputes. */
static inline sgt_recompute sgt_recompute_at(const sgt_backend_options *o, size_t layer)
{
    return o->recompute_at ? (sgt_recompute)o->recompute_at[layer] : o->recompute;
}

typedef struct sgt_batch {
    /* Two (batch, T) arrays. inputs: token ids. targets: the id to predict at each position (the
     * next token); a negative value means that the position has no loss. */
    const int32_t *inputs;
    int32_t *targets;
    /* (batch, T) array, used if attention stays within documents: for each token, the index in the
     * row at which its document begins. NULL: a document begins at each token whose id is
     * options.eot. The backend copies the array before the call returns. */
    const int32_t *starts;
    /* (batch, T) arrays that eval fills in; each may be NULL. `losses`: loss of each target, 0 for
     * a target without a loss. `greedy`: 1 if no id has a larger logit than the target, else 0;
     * undefined for a target without a loss. */
    float *losses;
    uint8_t *greedy;
} sgt_batch;

/* Set starts (batch, T): for each token, the index in the row at which its document begins. Copy
 * rows->starts, or if that is NULL, let a document begin at each id `eot`. */
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
    /* name of the CPU or GPU kernels in use, such as "avx512"; with different kernels or a
     * different `library`, results differ in their last bits */
    const char *level;
    /* name of the library for matrix products: "own matrix products", "cuBLASLt ..." */
    const char *library;
    /* delay of the metrics in steps: the metrics of step s can be read only after step s + lag has
     * been started; 0 on a CPU */
    unsigned lag;
    /* number of further micro_step calls for which the memory of `rows` must stay unchanged after
     * micro_step returns, because the device may still be copying it; 0 on a CPU */
    unsigned hold;
    /* function that allocates the loader's memory for rows; NULL: the loader may use any memory */
    void *(*pinned_alloc)(void *ctx, size_t bytes);
    void (*pinned_free)(void *ctx, void *p);
    void *pinned_ctx;

    void (*close)(sgt_backend *b); /* free everything, including b */

    /* put copies `count` floats at `from` into a tensor in the backend's memory, beginning at the
     * tensor's index `first`. get copies them back, to `to`. */
    int (*put)(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
               const float *from, sgt_error *err);
    int (*get)(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count, float *to,
               sgt_error *err);

    /* Run the forward and backward pass over `rows`, the rows of micro-step `micro` (from 0) in
     * step `step`. The gradients of `scale` times the loss are accumulated until `update` is
     * called. */
    int (*micro_step)(sgt_backend *b, uint64_t step, uint32_t micro, const sgt_batch *rows,
                      double scale, sgt_error *err);

    /* Finish step `step` (from 0). Convert the accumulated gradients to means over the step's
     * targets, clip them, update the parameters, and reset the gradients to 0. */
    int (*update)(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
    int (*metrics)(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err);

    /* Set *loss to the sum of the losses over `rows`, computed without dropout, and *targets to the
     * number of targets that have a loss. Call it only between steps. */
    int (*eval)(sgt_backend *b, const sgt_batch *rows, double *loss, uint64_t *targets,
                sgt_error *err);

    /* Write (put) or read (get) the state of the loss scaler and of spike detection, which
     * checkpoints store. Call these functions only between steps. NULL: the backend has no such
     * state. */
    void (*put_scaler)(sgt_backend *b, uint64_t step, const sgt_scaler *s);
    int (*get_scaler)(sgt_backend *b, sgt_scaler *s, sgt_error *err);

    /* List the memory that the backend has allocated, by kind. Return the number of kinds. */
    size_t (*memory)(const sgt_backend *b, sgt_memory_kind kinds[SGT_MEMORY_KINDS]);
    /* For each kind of memory, in the order of `memory`: set `within` to the bytes in use during
     * part `part` of a step, and `after` to the bytes still in use when that part has ended (see
     * sgt_live). `again`: 0 for the first micro-step of a step, 1 for a later one. This pointer is
     * NULL if the backend does not support it. */
    void (*live)(const sgt_backend *b, unsigned part, int again, uint64_t within[SGT_LIVE_KINDS],
                 uint64_t after[SGT_LIVE_KINDS]);
    /* text that names the matrix-product algorithms chosen by timing, for state.json; NULL: none */
    const char *choices;
    /* advice for users if gradients are infinite or NaN but losses are finite; it names the
     * attention implementation in use; NULL: none */
    const char *attention;

    /* peak speed of the device in this precision, in operations per second: peak_flops measured
     * with matrix products, datasheet_flops from the device's datasheet; 0: unknown */
    double peak_flops, datasheet_flops;
    /* device and precision to which the peak speeds refer, such as "NVIDIA H200, bf16"; NULL if
     * neither speed is known */
    const char *peak_name;
    /* number of kernel launches in a forward pass and in a complete step; 0: none has run so far */
    unsigned launches_forward, launches_step;
    /* total memory in bytes of a device with its own memory; 0: the backend uses the machine's
     * memory */
    uint64_t memory_total;
};

/* Words that options use for the values of sgt_precision, sgt_recompute and sgt_attention, in the
 * order of each enumeration. Each array ends with NULL. */
extern const char *const sgt_precision_words[], *const sgt_recompute_words[],
                                                    *const sgt_attention_words[];

/* Open a CPU backend. Return SGT_ENOMEM if memory runs out, with a message that says how much is
 * needed. Return SGT_EUNSUPPORTED if a CPU does not support an option, with a message that names
 * the option. */
int sgt_cpu_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);
/* Prefault the n bytes at p with `threads` threads, by writing a zero byte to each page. The kernel
 * clears a page when it is first written. Clearing the backend's memory takes half of the startup
 * time. */
void sgt_cpu_prefault(char *p, size_t n, int threads);

/* Estimate how much memory a CPU backend with these options would allocate, by kind and in total.
 * Nothing is allocated. */
int sgt_cpu_backend_estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                             size_t *count, uint64_t *bytes, sgt_error *err);

/* Initialize the parameters as GPT-2 does. Weights come from a normal distribution with standard
 * deviation 0.02, which is divided by sqrt(2 * layers) for projections into the residual stream.
 * Biases are 0, LayerNorm weights 1 and moments 0. Each parameter depends only on the seed, its
 * tensor and its index in the tensor. */
typedef int sgt_init(sgt_backend *b, const sgt_model *m, uint64_t seed, int threads,
                     sgt_error *err);
sgt_init sgt_init_parameters;

#endif
