/* settings_rows.c: the options of a training run, one row each. */
#include "train/settings_rows.h"

#include "train/backend.h"
#include "train/schedule.h"
#include "train/settings.h"
#include "loader/words.h"

/* largest --loss-scale: far above the largest number in fp16, 65504 */
#define MAX_LOSS_SCALE (1 << 24)

static const char *const devices[] = {"auto", "cpu", "cuda", NULL};
static const char *const gelus[] = {"tanh", "erf", NULL};
static const char *const optimizers[] = {"adamw", "sgd", "muon", NULL};
static const char *const optimizer_states[] = {"fp32", "bf16", NULL};
static const char *const recomputes[] = {"none", "gelu", "block", "auto", NULL};
static const char *const batchings[] = {"simd", "scalar", NULL};

/* A row: kind, section, sgt_setting, field and name; then what its kind needs, its help and its
 * flags. */
#define ROW(kind_, s, id, f, name_, ...)                   \
    [SGT_SET_##id] = {.kind = SGT_OPT_##kind_,             \
                      .section = SGT_SECTION_##s,          \
                      .name = name_,                       \
                      .offset = offsetof(sgt_settings, f), \
                      __VA_ARGS__}
#define FLAG(s, id, f, n, h, ...) ROW(FLAG, s, id, f, n, .help = h, .flags = __VA_ARGS__)
#define WORD(s, id, f, n, c, d, h, ...) \
    ROW(WORD, s, id, f, n, .choices = c, .def = d, .help = h, .flags = __VA_ARGS__)
#define TEXT(s, id, f, n, v, d, h, ...) \
    ROW(TEXT, s, id, f, n, .value = v, .def = d, .help = h, .flags = __VA_ARGS__)
#define NUMBER(k, s, id, f, n, v, least, most, d, h, ...)                           \
    ROW(k, s, id, f, n, .value = v, .min = least, .max = most, .def = d, .help = h, \
        .flags = __VA_ARGS__)
#define COUNT(...) NUMBER(COUNT, __VA_ARGS__)
#define SIZE(...) NUMBER(SIZE, __VA_ARGS__)
#define REAL(...) NUMBER(REAL, __VA_ARGS__)

const sgt_option sgt_settings_rows[SGT_SETTINGS + 1] = {
    TEXT(DATA, DATA, data, "data", "DIR|FILE", "out, where ./out holds shards",
         "training data: shards, from sgt-tokenize; several sets, A:0.7,B:0.3; or prompts and "
         "completions, FILE.jsonl",
         MAY_CHANGE | LATER, .letter = 'd'),
    TEXT(DATA, VAL_DATA, val_data, "val-data", "FILE", "no evaluation",
         "prompts and completions to evaluate on, if --data is FILE.jsonl", MAY_CHANGE | LATER,
         .needs = EXAMPLES),
    WORD(DATA, LOADER, loader, "loader", sgt_reader_words, "preload", "how shards are read",
         MAY_CHANGE, .needs = SHARDS),
    WORD(DATA, SAMPLING, sampling, "sampling", sgt_sampling_words, "shuffle",
         "how rows are drawn from the shards", 0, .needs = SHARDS),
    COUNT(DATA, PAD, pad, "pad-id", "ID", 0, UINT16_MAX, "the end-of-text id",
          "id that pads documents shorter than a row; padding has no loss", LATER,
          .needs = DOCUMENTS),
    COUNT(DATA, WORKERS, workers, "workers", "N", 1, 64, "1",
          "threads that prepare batches ahead of the step", 0, .needs = SHARDS),

    COUNT(RUN, STEPS, steps, "steps", "N", 1, 99999999, "one epoch",
          "steps to train, counted from the run's beginning even if it is resumed",
          MAY_CHANGE | LATER),
    REAL(RUN, EPOCHS, epochs, "epochs", "E", 1e-6, 1e6, "1",
         "passes over the data, if --steps is not given", NOT_KEPT),
    REAL(RUN, BUDGET, budget, "compute-budget", "PFDAYS", 1e-15, 1e9, "none",
         "train for this many petaflop/s-days, at 6 operations per parameter and token",
         NOT_KEPT | LATER),
    COUNT(RUN, EVAL_EVERY, eval_every, "eval-every", "N", 0, 1e9, "200",
          "steps between evaluations on the validation shards; 0: never", 0),
    COUNT(RUN, SAVE_EVERY, save_every, "save-every", "N", 0, 1e9, "1000",
          "steps between checkpoints; 0: only after the last step", 0),
    COUNT(RUN, KEEP, keep, "keep", "N", 0, 1e9, "3", "newest checkpoints to keep; 0: all", 0),
    COUNT(RUN, SEED, seed, "seed", "N", 0, 9e18, "1",
          "seed of the initial parameters and of the data order", 0),
    FLAG(RUN, OVERFIT, overfit, "overfit-batch",
         "train on the first step's rows alone, to check that the loss can fall", 0),

    TEXT(MODEL, MODEL, model, "model", "gpt2|gpt2-medium|gpt2-large|gpt2-xl|LxCxH", "gpt2",
         "model to train: a GPT-2, or layers x channels x heads", 0, .letter = 'm'),
    TEXT(MODEL, INIT, init, "init", "DIR|FILE", "a new model",
         "start from a Hugging Face GPT-2 directory, a checkpoint, or llm.c's model file", LATER),
    COUNT(MODEL, SEQ, seq, "seq-len", "N", 1, 1 << 20, "512", "tokens per row", 0),
    WORD(MODEL, GELU, gelu, "gelu", gelus, "tanh, or what --init has",
         "activation: GELU by the tanh approximation, or exact by erf", LATER),
    REAL(MODEL, DROPOUT, dropout, "dropout", "P", 0, 1, "0",
         "fraction of activations set to zero during training", 0, .below = 1),
    COUNT(MODEL, IGNORE, ignore, "ignore-index", "ID", 0, UINT16_MAX, "none",
          "targets with this id have no loss", LATER),
    FLAG(MODEL, NO_TIE, no_tie, "no-tie",
         "give the head a weight of its own instead of the embedding's", 0),
    FLAG(MODEL, DOCUMENT_MASK, document_mask, "document-mask",
         "limit attention to the document of each position", 0),

    COUNT(OPTIMIZER, BATCH, batch, "batch-size", "N|auto", 1, 1 << 20, "64 on CUDA, 8 on a CPU",
          "rows per micro-step; auto: the most that fit in memory", LATER, .letter = 'b'),
    COUNT(OPTIMIZER, ACCUM, accum, "grad-accum", "N", 1, 1 << 20, "1", "micro-steps per step", 0),
    REAL(OPTIMIZER, LR, lr, "lr", "X|auto", 0, HUGE_VAL, "auto",
         "learning rate; auto: chosen by the model's size and the rows per step", LATER),
    COUNT(OPTIMIZER, LR_BASE_BATCH, lr_base_batch, "lr-base-batch", "N", 1, 1 << 30, "64",
          "rows per step that a learning rate is meant for", NOT_KEPT),
    FLAG(OPTIMIZER, SCALE_LR, scale_lr, "scale-lr",
         "multiply --lr by the rows per step / --lr-base-batch", NOT_KEPT),
    REAL(OPTIMIZER, MIN_LR, min_lr, "min-lr", "X", 0, 1e9, "lr/10",
         "learning rate at the end of the schedule", LATER),
    COUNT(OPTIMIZER, WARMUP, warmup, "warmup", "N", 0, 1e9, "5 % of the steps, at most 1000",
          "steps over which the learning rate rises to --lr", LATER),
    WORD(OPTIMIZER, SCHEDULE, schedule, "schedule", sgt_schedule_words, "cosine",
         "learning-rate schedule after the warm-up", 0),
    WORD(OPTIMIZER, OPTIMIZER, optimizer, "optimizer", optimizers, "adamw",
         "optimizer that updates the parameters; muon: Muon for the matrices of blocks, AdamW for "
         "the rest",
         0),
    WORD(OPTIMIZER, OPTIMIZER_STATE, optimizer_state, "optimizer-state", optimizer_states, "fp32",
         "type that AdamW's two moments are stored in; bf16 takes half the memory and is rounded "
         "at random (CPU)",
         DEVICE, .needs = ADAMW),
    TEXT(OPTIMIZER, BETAS, betas, "betas", "B1,B2", "0.9,0.95",
         "decay rates of AdamW's two moments", 0, .needs = BETAS),
    REAL(OPTIMIZER, MOMENTUM, momentum, "momentum", "X", 0, 1, "0.9", "SGD's momentum", 0,
         .below = 1, .needs = SGD),
    FLAG(OPTIMIZER, NESTEROV, nesterov, "nesterov", "SGD with Nesterov momentum", 0,
         .needs = MOMENTUM),
    REAL(OPTIMIZER, WEIGHT_DECAY, weight_decay, "weight-decay", "X", 0, 1e9, "0.1",
         "decoupled weight decay, on tensors of two dimensions", 0),
    REAL(OPTIMIZER, GRAD_CLIP, grad_clip, "grad-clip", "X", 0, 1e9, "1",
         "global norm that gradients are clipped to; 0: no clipping; Muon's are not clipped", 0),
    REAL(OPTIMIZER, SKIP_SPIKES, skip_spikes, "skip-spikes", "Z", 0, 1e9, "0: none",
         "skip updates whose loss or gradient norm is Z standard deviations above the last 128", 0),

    WORD(MACHINE, DEVICE, device, "device", devices, "auto",
         "where to train; auto uses a GPU if there is one", MAY_CHANGE),
    WORD(MACHINE, PRECISION, precision, "precision", sgt_precision_words,
         "bf16 on CUDA and on CPUs that multiply it, else fp32",
         "number format of matrix products and activations", DEVICE | LATER),
    REAL(MACHINE, LOSS_SCALE, loss_scale, "loss-scale", "X", 1, MAX_LOSS_SCALE, "65536",
         "first factor of fp16's loss", DEVICE, .needs = FP16),
    WORD(MACHINE, RECOMPUTE, recompute, "recompute", recomputes, "none",
         "what the backward pass recomputes instead of storing it; auto: what fits", 0),
    SIZE(MACHINE, MEMORY_LIMIT, memory_limit, "memory-limit", "SIZE", 1, 9e18, "all free memory",
         "memory limit of the run; with CUDA, of the device", MAY_CHANGE | LOCAL | LATER),
    COUNT(MACHINE, THREADS, threads, "threads", "N", 1, 1024, "all available cores",
          "number of CPU threads; the results do not depend on it", MAY_CHANGE | LOCAL | LATER,
          .letter = 't'),
    TEXT(MACHINE, CPU, cpu, "cpu", "auto|plain|avx2|avx512|amx", "auto",
         "highest CPU instruction level to use", MAY_CHANGE | LOCAL),
    FLAG(MACHINE, DETERMINISTIC, deterministic, "deterministic",
         "give the same bits in every run, on CUDA too (a CPU always does)", 0),

    WORD(TECHNIQUES, ATTENTION, attention, "attention", sgt_attention_words, "auto: the fastest",
         "attention kernels to use (CUDA)", DEVICE | CUDA),
    WORD(TECHNIQUES, BATCHING, batching, "batching", batchings, "simd",
         "make rows with vector instructions, or one token at a time", 0, .needs = SHARDS),
    FLAG(TECHNIQUES, NO_OVERLAP, no_overlap, "no-overlap",
         "fetch and copy each batch when a step needs it, not ahead; on a CPU, also update all "
         "parameters at the end of a step, not during the next one",
         0),
    FLAG(TECHNIQUES, SYNC_METRICS, sync_metrics, "sync-metrics",
         "wait for each step's metrics before the next step (CUDA)", DEVICE | CUDA),
    FLAG(TECHNIQUES, NO_FUSE, no_fuse, "no-fuse",
         "use a separate kernel for every operation (CUDA)", DEVICE | CUDA),
    FLAG(TECHNIQUES, NO_GRAPHS, no_graphs, "no-graphs", "launch every kernel from the host (CUDA)",
         DEVICE | CUDA),
    FLAG(TECHNIQUES, SYNC_KERNELS, sync_kernels, "sync-kernels",
         "wait after every launch, without graphs: a failure then names the kernel that failed "
         "(CUDA)",
         NOT_KEPT | CUDA),
    FLAG(TECHNIQUES, NO_PAD_VOCAB, no_pad_vocab, "no-pad-vocab",
         "compute logits for exactly the vocabulary's ids, without padding (CUDA)", DEVICE | CUDA),
    TEXT(TECHNIQUES, VARIANT, variant, "variant", "NAMES", "default",
         "optional kernels of a step, as listed by sgt-bench step --variants; or all, none (CUDA)",
         DEVICE | CUDA | LATER),
};
