/* config.c: the table of a training run's options. Each option has one row, from which its default
 * value, its checks and its JSON are derived. */
#include "train/config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/json.h"
#include "loader/sgt_loader.h"
#include "loader/read/reader.h"

#define MOST_VALUES ((size_t)1 << 16) /* most JSON values in options.json */
#define CPU_BATCH 8
#define CUDA_BATCH 64
/* maximum value of --loss-scale */
#define MAX_LOSS_SCALE (1 << 24)

/* flags that rows of the option table below combine in the field `flags`; used only in this file */
enum {
    MAY_CHANGE = 1, /* may differ on --resume */
    /* The option describes the machine, so ranks on different machines may have different values.
     * The value is written to JSON only if the user set it. */
    LOCAL = 2,
    DEVICE = 4,    /* may change on --resume if the kind of device changes */
    CUDA = 8,      /* available with CUDA only */
    NOT_KEPT = 16, /* not written to options.json */
    /* The default is chosen later, because it depends on other options or on the device. Without
     * this flag, the default is the text `def` up to its first colon, or all of `def` if there is
     * no colon. */
    LATER = 32,
    PATH = 64,    /* the value is a path, which may differ between machines */
    LENGTH = 128, /* determines how long to train */
    HERE = 256    /* never taken from a checkpoint */
};
/* Values of the field `needs` in a row of the option table. Each value stands for a condition
 * without which the option has no effect; for example, ADAMW means that the optimizer must be
 * AdamW. If the condition is not met, the option is not written to JSON, and setting it is an
 * error. */
enum { SHARDS = 1, EXAMPLES, DOCUMENTS, ADAMW, BETAS, SGD, MOMENTUM, FP16 };

static const char *const devices[] = {"auto", "cpu", "cuda", NULL};
static const char *const gelus[] = {"tanh", "erf", NULL};
static const char *const optimizers[] = {"adamw", "sgd", "muon", NULL};
static const char *const optimizer_states[] = {"fp32", "bf16", NULL};
static const char *const recomputes[] = {"none", "gelu", "block", "auto", NULL};
static const char *const batchings[] = {"simd", "scalar", NULL};

/* Define one row of the option table: the kind of the option, its section in --help, its index
 * SGT_SET_`id`, its field `f` in sgt_config and its name. The remaining arguments are initializers
 * of other fields of the row, such as the help text and the flags. */
#define ROW(kind_, s, id, f, name_, ...)                 \
    [SGT_SET_##id] = {.kind = SGT_OPT_##kind_,           \
                      .section = SGT_SECTION_##s,        \
                      .name = name_,                     \
                      .offset = offsetof(sgt_config, f), \
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

const sgt_option sgt_config_rows[SGT_SETTINGS + 1] = {
    TEXT(DATA, DATA, data, "data", "DIR|FILE", "out, if ./out holds shards",
         "training data: a set or shard, several sets (A:0.7,B:0.3), or prompts (FILE.jsonl)",
         MAY_CHANGE | LATER | PATH, .letter = 'd'),
    TEXT(DATA, VAL_DATA, val_data, "val-data", "FILE", "no evaluation",
         "prompts and completions for evaluations, if --data is FILE.jsonl",
         MAY_CHANGE | LATER | PATH, .needs = EXAMPLES),
    WORD(DATA, LOADER, loader, "loader", sgt_reader_words, "preload",
         "reader: preload copies shards to memory, mmap maps them, uring uses direct I/O",
         MAY_CHANGE, .needs = SHARDS),
    WORD(DATA, SAMPLING, sampling, "sampling", sgt_sampling_words, "shuffle",
         "contents of each row: a window, one document (documents), or several documents (packed)",
         0, .needs = SHARDS),
    COUNT(DATA, PAD, pad, "pad-id", "ID", 0, SGT_MOST_IDS - 1, "the end-of-text id",
          "token id that pads short documents; padding does not count in the loss", LATER,
          .needs = DOCUMENTS),
    COUNT(DATA, WORKERS, workers, "workers", "N", 1, 64, "1",
          "threads that prepare batches; use more if steps wait for data", 0, .needs = SHARDS),

    COUNT(RUN, STEPS, steps, "steps", "N", 1, 99999999, "one epoch",
          "total number of steps, including steps before a resume", MAY_CHANGE | LATER | LENGTH),
    REAL(RUN, EPOCHS, epochs, "epochs", "E", 1e-6, 1e6, "1",
         "number of passes over the data, if --steps is not given", NOT_KEPT | LENGTH),
    REAL(RUN, BUDGET, budget, "compute-budget", "PFDAYS", 1e-15, 1e9, "none",
         "amount of compute, in petaflop/s-days, at 6 operations per parameter and token",
         NOT_KEPT | LATER | LENGTH),
    COUNT(RUN, EVAL_EVERY, eval_every, "eval-every", "N", 0, 1e9, "200",
          "number of steps between evaluations on up to 256 validation rows; 0: no evaluations", 0),
    COUNT(RUN, SAVE_EVERY, save_every, "save-every", "N", 0, 1e9, "1000",
          "number of steps between checkpoints; 0: only one checkpoint, after the last step", 0),
    COUNT(RUN, KEEP, keep, "keep", "N", 0, 1e9, "3",
          "number of newest checkpoints to keep besides the best one; 0: keep all", MAY_CHANGE),
    COUNT(RUN, SEED, seed, "seed", "N", 0, 9e18, "1",
          "random seed for the initial parameters and the data order", 0),
    FLAG(RUN, OVERFIT, overfit, "overfit-batch",
         "use the rows of the first step in every step, to check that the loss can fall", 0),

    TEXT(MODEL, MODEL, model, "model", "gpt2|gpt2-medium|gpt2-large|gpt2-xl|LxCxH", "gpt2",
         "GPT-2 size, or layers x channels x attention heads, such as 4x256x4", 0, .letter = 'm'),
    TEXT(MODEL, INIT, init, "init", "DIR|FILE", "a new model",
         "initial weights: a run, checkpoint, Hugging Face GPT-2 folder, or llm.c model file",
         LATER | PATH),
    COUNT(MODEL, SEQ, seq, "seq-len", "N", 1, 1 << 20, "512", "number of tokens per row", 0),
    WORD(MODEL, GELU, gelu, "gelu", gelus, "tanh, or that of the --init model",
         "variant of GELU: tanh approximation (as in GPT-2), or exact, with erf", LATER),
    REAL(MODEL, DROPOUT, step.dropout, "dropout", "P", 0, 1, "0",
         "fraction of activations set to zero during training", 0, .below = 1),
    COUNT(MODEL, IGNORE, ignore, "ignore-index", "ID", 0, SGT_MOST_IDS - 1, "none",
          "token id that does not count in the loss as a target, such as padding", LATER),
    FLAG(MODEL, NO_TIE, no_tie, "no-tie",
         "use separate weights for the output head and the token embedding", 0),
    FLAG(MODEL, DOCUMENT_MASK, step.documents, "document-mask",
         "limit the attention of each token to tokens of the same document", 0),

    COUNT(OPTIMIZER, BATCH, batch, "batch-size", "N|auto", 1, 1 << 20, "64 on CUDA, 8 on a CPU",
          "rows per micro-step over all ranks; auto: as many as fit in memory", LATER,
          .letter = 'b'),
    COUNT(OPTIMIZER, ACCUM, accum, "grad-accum", "N", 1, 1 << 20, "1",
          "number of micro-steps per step; a step sums the gradients of its micro-steps", 0),
    REAL(OPTIMIZER, LR, lr, "lr", "X|auto", 0, HUGE_VAL, "auto",
         "learning rate; auto: derived from the model's size and the number of rows per step",
         MAY_CHANGE | LATER),
    COUNT(OPTIMIZER, LR_BASE_BATCH, lr_base_batch, "lr-base-batch", "N", 1, 1 << 30, "64",
          "reference number of rows per step for --lr auto and --scale-lr", NOT_KEPT),
    FLAG(OPTIMIZER, SCALE_LR, scale_lr, "scale-lr",
         "multiply --lr by the number of rows per step divided by --lr-base-batch", NOT_KEPT),
    REAL(OPTIMIZER, MIN_LR, min_lr, "min-lr", "X", 0, 1e9, "lr/10",
         "learning rate at the end of the schedule", MAY_CHANGE | LATER),
    COUNT(OPTIMIZER, WARMUP, warmup, "warmup", "N", 0, 1e9, "5 % of the steps, at most 1000",
          "number of steps over which the learning rate rises to --lr", LATER),
    WORD(OPTIMIZER, SCHEDULE, schedule, "schedule", sgt_schedule_words, "cosine",
         "learning-rate schedule after warm-up; wsd: constant until the last fifth", MAY_CHANGE),
    WORD(OPTIMIZER, OPTIMIZER, step.optim.kind, "optimizer", optimizers, "adamw",
         "optimizer; muon: Muon for the matrices in transformer blocks, AdamW for the rest", 0),
    WORD(OPTIMIZER, OPTIMIZER_STATE, step.optim.bf16_moments, "optimizer-state", optimizer_states,
         "fp32",
         "number format of AdamW's moments; bf16 (CPU only): half the memory, stochastic rounding",
         DEVICE, .needs = ADAMW),
    TEXT(OPTIMIZER, BETAS, betas, "betas", "B1,B2", "0.9,0.95",
         "exponential decay rates of AdamW's two moments", 0, .needs = BETAS),
    REAL(OPTIMIZER, MOMENTUM, step.optim.momentum, "momentum", "X", 0, 1, "0.9", "momentum of SGD",
         0, .below = 1, .needs = SGD),
    FLAG(OPTIMIZER, NESTEROV, step.optim.nesterov, "nesterov", "use Nesterov momentum in SGD", 0,
         .needs = MOMENTUM),
    REAL(OPTIMIZER, WEIGHT_DECAY, step.optim.weight_decay, "weight-decay", "X", 0, 1e9, "0.1",
         "decoupled weight decay for two-dimensional tensors", 0),
    REAL(OPTIMIZER, GRAD_CLIP, step.optim.grad_clip, "grad-clip", "X", 0, 1e9, "1",
         "maximum global norm of all gradients that Muon does not use; 0: no clipping", 0),
    REAL(OPTIMIZER, SKIP_SPIKES, step.skip_spikes, "skip-spikes", "Z", 0, 1e9, "0: none",
         "skip an update if the loss or gradient norm is more than Z standard deviations above its "
         "mean over the last 128 steps",
         0),

    WORD(MACHINE, DEVICE, device, "device", devices, "auto",
         "where to run; auto uses a GPU if there is one", MAY_CHANGE),
    WORD(MACHINE, PRECISION, step.precision, "precision", sgt_precision_words,
         "bf16 on CUDA and on CPUs with bf16 instructions, else fp32",
         "number format of matrix products and activations", DEVICE | LATER),
    REAL(MACHINE, LOSS_SCALE, step.loss_scale, "loss-scale", "X", 1, MAX_LOSS_SCALE, "65536",
         "initial loss scale in fp16; overflows lower the scale", DEVICE, .needs = FP16),
    WORD(MACHINE, RECOMPUTE, recompute, "recompute", recomputes, "none",
         "values that the backward pass recomputes to save memory; auto: no more than needed", 0),
    SIZE(MACHINE, MEMORY_LIMIT, memory_limit, "memory-limit", "SIZE", 1, 9e18, "all free memory",
         "maximum memory per rank: host memory of the process on a CPU, device memory on CUDA",
         MAY_CHANGE | LOCAL | HERE | LATER),
    COUNT(MACHINE, THREADS, threads, "threads", "N", 1, 1024, "all available cores",
          "number of CPU threads, which does not affect the results", MAY_CHANGE | LOCAL | LATER,
          .letter = 't'),
    TEXT(MACHINE, CPU, cpu, "cpu", "auto|plain|avx2|avx512|amx", "auto",
         "most advanced CPU instruction set to use", MAY_CHANGE | LOCAL | HERE),
    FLAG(MACHINE, DETERMINISTIC, step.deterministic, "deterministic",
         "make repeated commands give bit-identical results on CUDA, as they do on a CPU", 0),

    WORD(TECHNIQUES, ATTENTION, step.attention, "attention", sgt_attention_words,
         "auto: the fastest",
         "attention kernels to use: mma avoids those for sm_90, naive stores all attention scores "
         "(CUDA only)",
         DEVICE | CUDA),
    WORD(TECHNIQUES, BATCHING, batching, "batching", batchings, "simd",
         "how to copy rows into batches: with vector instructions, or token by token", 0,
         .needs = SHARDS),
    FLAG(TECHNIQUES, NO_OVERLAP, step.no_overlap, "no-overlap",
         "prepare each batch immediately before its step instead of during the previous step; on a "
         "CPU, also complete all updates at the end of a step",
         0),
    FLAG(TECHNIQUES, SYNC_METRICS, sync_metrics, "sync-metrics",
         "wait for each step's metrics before the next step (CUDA only)", DEVICE | CUDA),
    FLAG(TECHNIQUES, NO_FUSE, step.no_fuse, "no-fuse",
         "use a separate kernel for each operation (CUDA only)", DEVICE | CUDA),
    FLAG(TECHNIQUES, NO_GRAPHS, step.no_graphs, "no-graphs",
         "launch each kernel from the host, without CUDA graphs (CUDA only)", DEVICE | CUDA),
    FLAG(TECHNIQUES, SYNC_KERNELS, step.sync_kernels, "sync-kernels",
         "wait after each kernel, without CUDA graphs, so that errors name the kernel (CUDA only)",
         NOT_KEPT | CUDA),
    FLAG(TECHNIQUES, NO_PAD_VOCAB, step.no_pad_vocab, "no-pad-vocab",
         "compute logits without padding the vocabulary (CUDA only)", DEVICE | CUDA),
    TEXT(TECHNIQUES, VARIANT, variant, "variant", "NAMES", "default",
         "names of optional kernels (see sgt-bench step --variants), all, or none (CUDA only)",
         DEVICE | CUDA | LATER),
};

static void *field(const sgt_config *s, const sgt_option *row)
{
    return (char *)(uintptr_t)s + row->offset;
}

static int given(const sgt_config *s, const sgt_option *row)
{
    return s->given[row - sgt_config_rows];
}

/* Return 1 if the option is stored in options.json and in checkpoints, otherwise 0. */
static int is_kept(const sgt_option *row) { return !(row->flags & NOT_KEPT); }

static void set_default(sgt_config *s, const sgt_option *row)
{
    int later = row->flags & LATER, whole = sgt_option_is_whole(row);
    void *at = field(s, row);
    if (row->kind == SGT_OPT_FLAG) *(int *)at = 0;
    else if (row->kind == SGT_OPT_TEXT) *(const char **)at = later ? NULL : row->def;
    else if (row->kind == SGT_OPT_WORD)
        *(int *)at =
            later ? SGT_DEFAULT_WORD : sgt_option_word(row, row->def, strcspn(row->def, ":"));
    else if (whole) *(uint64_t *)at = later ? SGT_DEFAULT_COUNT : strtoull(row->def, NULL, 10);
    else *(double *)at = later ? SGT_DEFAULT_REAL : strtod(row->def, NULL);
}

void sgt_config_default(sgt_config *s)
{
    *s = (sgt_config){0};
    for (const sgt_option *row = sgt_config_rows; row->name; row++) set_default(s, row);
}

void sgt_config_free(sgt_config *s)
{
    json_decref(s->owners);
    s->owners = NULL;
}

/* ---- checks ---- */

static int parse_betas(const sgt_config *s, double betas[2], sgt_error *err)
{
    char *end;
    betas[0] = strtod(s->betas, &end);
    int ok = end != s->betas && *end == ',';
    if (ok) {
        const char *second = end + 1;
        betas[1] = strtod(second, &end);
        ok = end != second && *end == '\0';
    }
    /* a beta that float32 rounds to 1 would make a divisor 0 in the update */
    for (int i = 0; ok && i < 2; i++) ok = betas[i] >= 0 && (float)betas[i] < 1;
    if (!ok)
        return sgt_fail(
            err, SGT_EUSAGE,
            "--betas %s: must be two numbers of at least 0 and below 1, such as 0.9,0.95",
            s->betas);
    return SGT_OK;
}

int sgt_config_step(sgt_config *s, sgt_error *err)
{
    double betas[2];
    sgt_backend_options *o = &s->step;
    int rc = parse_betas(s, betas, err), all = s->ignore == SGT_DEFAULT_COUNT;
    if (rc < 0) return rc;
    o->optim.beta1 = (float)betas[0];
    o->optim.beta2 = (float)betas[1];
    o->optim.eps = 1e-8f;
    o->seq = (uint32_t)s->seq;
    o->accum = (uint32_t)s->accum;
    o->seed = s->seed;
    o->ignoring = !all;
    o->ignore = all ? 0 : (int32_t)s->ignore;
    if (s->recompute != SGT_RECOMPUTE_AUTO) o->recompute = (sgt_recompute)s->recompute;
    return s->variant ? sgt_variants_parse(&o->variants, s->variant, err) : SGT_OK;
}

static int fail_no_word(const sgt_option *row, const char *word, sgt_error *err)
{
    char value[SGT_OPTION_VALUE];
    return sgt_fail(err, SGT_EUSAGE, "--%s %s: must be one of %s", row->name, word,
                    sgt_option_value(row, value));
}

/* Check that an option's value is within the bounds stated in its row. The value is a number, or
 * the index of a word in the list of allowed words. */
static int check_row(const sgt_config *s, const sgt_option *row, sgt_error *err)
{
    char shown[32];
    int later = row->flags & LATER, words = 0;
    const void *at = field(s, row);
    if (sgt_option_is_whole(row)) {
        uint64_t n = *(const uint64_t *)at;
        snprintf(shown, sizeof shown, "%llu", (unsigned long long)n);
        return later && n == SGT_DEFAULT_COUNT ? SGT_OK
                                               : sgt_option_check(row, (double)n, shown, err);
    }
    if (row->kind == SGT_OPT_REAL) {
        double x = *(const double *)at;
        snprintf(shown, sizeof shown, "%g", x);
        return later && x == SGT_DEFAULT_REAL ? SGT_OK : sgt_option_check(row, x, shown, err);
    }
    if (row->kind != SGT_OPT_WORD) return SGT_OK;
    while (row->choices[words]) words++;
    int word = *(const int *)at;
    snprintf(shown, sizeof shown, "%d", word);
    return word < words && word >= (later ? SGT_DEFAULT_WORD : 0) ? SGT_OK
                                                                  : fail_no_word(row, shown, err);
}

int sgt_config_check(const sgt_config *s, sgt_error *err)
{
    int rc = SGT_OK;
    sgt_config copy = *s;
    sgt_model m;
    const sgt_option *length = NULL;
    for (const sgt_option *row = sgt_config_rows; row->name && rc == SGT_OK; row++) {
        rc = check_row(s, row, err);
        if (rc < 0 || !given(s, row) || !(row->flags & LENGTH)) continue;
        if (length)
            rc = sgt_fail(err, SGT_EUSAGE, "--%s: not together with --%s", row->name, length->name);
        length = row;
    }
    if (rc < 0 || (rc = sgt_config_step(&copy, err)) < 0) return rc;
    if (s->scale_lr && s->lr == SGT_DEFAULT_REAL)
        return sgt_fail(err, SGT_EUSAGE,
                        "--scale-lr: needs --lr, the rate to scale (--lr auto already depends on "
                        "the batch size)");
    if (s->init && s->given[SGT_SET_MODEL])
        return sgt_fail(err, SGT_EUSAGE,
                        "--model %s: not together with --init, which decides the shape", s->model);
    return s->init ? SGT_OK : sgt_model_named(&m, s->model, err);
}

/* ---- options that depend on others ---- */

int sgt_config_examples(const sgt_config *s)
{
    size_t n = s->data ? strlen(s->data) : 0;
    return n > 6 && strcmp(s->data + n - 6, ".jsonl") == 0;
}

/* Return the setting without which the option has no effect, such as "--optimizer sgd". Return NULL
 * if this setting is present, or if the option has an effect with any settings. */
static const char *missing_need(const sgt_config *s, const sgt_option *row)
{
    int examples = sgt_config_examples(s);
    switch (row->needs) {
    case SHARDS: return examples ? "--data of shards" : NULL;
    case EXAMPLES: return examples ? NULL : "a --data FILE.jsonl";
    case DOCUMENTS:
        return examples || s->sampling == SGT_SAMPLING_DOCUMENTS ? NULL : "--sampling documents";
    case ADAMW: return s->step.optim.kind == SGT_ADAMW ? NULL : "--optimizer adamw";
    case BETAS: return s->step.optim.kind != SGT_SGD ? NULL : "--optimizer adamw or muon";
    case SGD: return s->step.optim.kind == SGT_SGD ? NULL : "--optimizer sgd";
    case MOMENTUM:
        if (s->step.optim.kind != SGT_SGD) return "--optimizer sgd";
        return s->step.optim.momentum > 0 ? NULL : "a --momentum above 0";
    case FP16: return s->step.precision == SGT_PRECISION_FP16 ? NULL : "--precision fp16";
    default: return NULL;
    }
}

int sgt_config_check_together(const sgt_config *s, sgt_error *err)
{
    for (const sgt_option *row = sgt_config_rows; row->name; row++)
        if (given(s, row) && missing_need(s, row))
            return sgt_fail(err, SGT_EUSAGE, "--%s: needs %s", row->name, missing_need(s, row));
    return SGT_OK;
}

/* Reset the option to its default, because it needs CUDA and the device is a CPU. If the user set
 * the option to another value, return an error. The option's kind must be text, word or flag. */
static int without_cuda(sgt_config *s, const sgt_option *row, sgt_error *err)
{
    sgt_config usual;
    void *at = field(s, row), *was = field(&usual, row);
    int text = row->kind == SGT_OPT_TEXT;
    set_default(&usual, row);
    const char *now = text ? *(const char **)at : NULL, *then = text ? *(const char **)was : NULL;
    int differs = text ? now && (!then || strcmp(now, then) != 0) : *(int *)at != *(int *)was;
    if (row->kind == SGT_OPT_WORD) now = row->choices[*(int *)at];
    if (differs && given(s, row))
        return sgt_fail(err, SGT_EUNSUPPORTED, "--%s%s%s: needs --device cuda", row->name,
                        now ? " " : "", now ? now : "");
    set_default(s, row);
    return SGT_OK;
}

int sgt_config_take_device(sgt_config *s, int cuda, int bf16, sgt_error *err)
{
    int rc = SGT_OK;
    for (const sgt_option *row = sgt_config_rows; row->name && !cuda && rc == SGT_OK; row++)
        if (row->flags & CUDA) rc = without_cuda(s, row, err);
    if (cuda && !s->variant) s->variant = "default";
    if (s->step.precision == SGT_DEFAULT_WORD)
        s->step.precision = bf16 ? SGT_PRECISION_BF16 : SGT_PRECISION_FP32;
    if (s->batch == SGT_DEFAULT_COUNT && !s->batch_auto) s->batch = cuda ? CUDA_BATCH : CPU_BATCH;
    return rc;
}

/* ---- JSON ---- */

static int read_value(sgt_config *s, const sgt_option *row, const json_t *v, const char *what,
                      sgt_error *err)
{
    void *at = field(s, row);
    int text = row->kind == SGT_OPT_TEXT || row->kind == SGT_OPT_WORD;
    int whole = sgt_option_is_whole(row);
    const char *word = json_string_value(v);
    if (row->kind == SGT_OPT_WORD && word) {
        *(int *)at = sgt_option_word(row, word, strlen(word));
        return *(int *)at < 0 ? fail_no_word(row, word, err) : SGT_OK;
    }
    if (text && word) *(const char **)at = word;
    else if (whole && json_is_integer(v) && json_integer_value(v) >= 0)
        *(uint64_t *)at = (uint64_t)json_integer_value(v);
    else if (row->kind == SGT_OPT_REAL && json_is_number(v)) *(double *)at = json_number_value(v);
    else if (row->kind == SGT_OPT_FLAG && json_is_boolean(v)) *(int *)at = json_is_true(v);
    else if (row->kind == SGT_OPT_REAL && row->flags & LATER && word && strcmp(word, "auto") == 0)
        *(double *)at = SGT_DEFAULT_REAL;
    else
        return sgt_fail(err, SGT_EFORMAT, "%s: '%s' is not %s", what, row->name,
                        text                        ? "a string"
                        : whole                     ? "a whole number of at least 0"
                        : row->kind == SGT_OPT_FLAG ? "true or false"
                                                    : "a number");
    return SGT_OK;
}

int sgt_config_merge(sgt_config *s, const char *text, const char *what, sgt_merge which,
                     sgt_error *err)
{
    const char *name;
    json_t *v, *json;
    int rc = sgt_json_object(&json, text, strlen(text), MOST_VALUES, what, err);
    if (rc < 0) return rc;
    if (!s->owners) s->owners = json_array();
    if (json_array_append_new(s->owners, json) < 0) return sgt_fail_memory(err, what);
    const int taken = which == SGT_MERGE_MOVED ? MAY_CHANGE | DEVICE : MAY_CHANGE;
    int left_out = which == SGT_MERGE_GIVEN ? 0 : HERE;
    /* --steps, --epochs and --compute-budget are mutually exclusive. If the user has set one of
     * them, ignore all three in the JSON object. */
    if (s->given[SGT_SET_STEPS] || s->given[SGT_SET_EPOCHS] || s->given[SGT_SET_BUDGET])
        left_out |= LENGTH;
    json_object_foreach(json, name, v)
    {
        const sgt_option *row = sgt_config_rows;
        while (row->name && strcmp(row->name, name) != 0) row++;
        if (!row->name) {
            s->unknown = name;
            return sgt_fail(
                err, SGT_EFORMAT,
                "%s: unknown option '%s' (options are named as in --help, without the dashes)",
                what, name);
        }
        if (given(s, row) || json_is_null(v) || row->flags & left_out) continue;
        if (which >= SGT_MERGE_CHANGED && !(row->flags & taken)) continue;
        if ((rc = read_value(s, row, v, what, err)) < 0) return rc;
        if (which == SGT_MERGE_GIVEN) s->given[row - sgt_config_rows] = 1;
    }
    if (s->given[SGT_SET_LR] && !s->given[SGT_SET_MIN_LR] &&
        s->min_lr == json_number_value(json_object_get(json, "lr")) / 10)
        s->min_lr = SGT_DEFAULT_REAL;
    return SGT_OK;
}

/* Return the string that options.json stores for an option whose kind is text or word. Return NULL
 * if nothing is stored, for example because the value is undecided. Variants are stored as a list
 * of names, so that a resumed run keeps its variants even if the default variants have changed. */
static const char *kept_text(char names[SGT_VARIANTS_TEXT], const sgt_config *s,
                             const sgt_option *row)
{
    uint32_t set;
    int word = row->kind == SGT_OPT_WORD ? *(const int *)field(s, row) : SGT_DEFAULT_WORD;
    if (row->kind != SGT_OPT_TEXT) return word < 0 ? NULL : row->choices[word];
    const char *text = *(const char *const *)field(s, row);
    if (row != &sgt_config_rows[SGT_SET_VARIANT] || !text ||
        sgt_variants_parse(&set, text, NULL) < 0)
        return text;
    return sgt_variants_words(names, set);
}

/* Write `text` as a JSON string to `out`. Return 1, or 0 if out of memory. */
static int render_text(char *out, size_t n, const char *text)
{
    json_t *v = json_stringn_nocheck(text, strlen(text));
    if (!v) return 0;
    size_t used = json_dumpb(v, out, n, JSON_ENCODE_ANY);
    out[used < n ? used : 0] = '\0';
    json_decref(v);
    if (used || !(v = json_string(text))) return 1;
    json_decref(v); /* `text` is valid UTF-8, so json_dumpb failed for lack of memory */
    return 0;
}

/* Write the value of an option as JSON to `out`. Write "" if the value is undecided, the option has
 * no effect, or the option is a flag that is off. Write a number with the fewest digits (at least
 * 6) from which it can be read back exactly. Return 1, or 0 if out of memory. */
static int render(char *out, size_t n, const sgt_config *s, const sgt_option *row)
{
    char names[SGT_VARIANTS_TEXT];
    const void *at = field(s, row);
    int whole = sgt_option_is_whole(row);
    out[0] = '\0';
    if ((row->flags & LOCAL && !given(s, row)) || missing_need(s, row)) return 1;
    if (row->kind == SGT_OPT_FLAG && *(const int *)at) snprintf(out, n, "true");
    if (whole && *(const uint64_t *)at != SGT_DEFAULT_COUNT)
        snprintf(out, n, "%llu", (unsigned long long)*(const uint64_t *)at);
    if (row->kind == SGT_OPT_REAL && *(const double *)at != SGT_DEFAULT_REAL)
        for (int digits = 6; digits <= 17; digits++) {
            /* + 0.0 turns -0 into 0 */
            snprintf(out, n, "%.*g", digits, *(const double *)at + 0.0);
            if (strtod(out, NULL) == *(const double *)at) break;
        }
    const char *text = kept_text(names, s, row);
    return text ? render_text(out, n, text) : 1;
}

/* size in bytes of a buffer for one JSON value; the longest value is a path of PATH_MAX bytes, each
 * written as \uXXXX */
#define MAX_VALUE 32768

char *sgt_config_json(const sgt_config *s)
{
    char *text = NULL, *value = malloc(MAX_VALUE);
    size_t n, lines = 0;
    int whole = value != NULL;
    FILE *f = open_memstream(&text, &n);
    if (f && value) {
        fputs("{", f);
        for (const sgt_option *row = sgt_config_rows; row->name; row++) {
            if (!is_kept(row)) continue;
            whole &= render(value, MAX_VALUE, s, row);
            if (*value) fprintf(f, "%s\n  \"%s\": %s", lines++ ? "," : "", row->name, value);
        }
        fputs("\n}\n", f);
    }
    if (f && (ferror(f) | fclose(f))) whole = 0;
    if (!whole) {
        free(text);
        text = NULL;
    }
    free(value);
    return text;
}

/* How to compare two sets of options: which options to ignore, and how to report a difference.
 * sgt_config_same_run and sgt_config_same_ranks each have one of these structs. */
typedef struct comparison {
    int skipped; /* options with any of these flags are not compared */
    int code;    /* error code if another row differs */
    const char *was, *where;
} comparison;

/* Compare the options in `s` with those in the JSON object `text`, ignoring options with a flag in
 * how->skipped. If an option differs, return an error that names the first such option. */
static int compare(const sgt_config *s, const char *text, const comparison *how, sgt_error *err)
{
    sgt_config kept;
    char *now = malloc((size_t)2 * MAX_VALUE), *then = now ? now + MAX_VALUE : NULL;
    if (!now) return sgt_fail_memory(err, "options");
    sgt_config_default(&kept);
    int rc = sgt_config_merge(&kept, text, how->where, SGT_MERGE_GIVEN, err);
    /* JSON cannot store a path that is not valid UTF-8. If the path of the data is missing in
     * `text` for this reason, treat the two paths as equal. */
    if (!kept.data) kept.data = s->data;
    for (const sgt_option *row = sgt_config_rows; row->name && rc == SGT_OK; row++) {
        if (!is_kept(row) || row->flags & how->skipped) continue;
        /* A run that began with --init has the model shape of the initial model, and --model has no
         * effect on it, so do not compare --model. */
        if (row == &sgt_config_rows[SGT_SET_MODEL] && kept.init) continue;
        /* If `text` does not mention variants, a version of sgt without variants wrote it, so do
         * not compare them. */
        if (row == &sgt_config_rows[SGT_SET_VARIANT] && !kept.variant) continue;
        if (!render(now, MAX_VALUE, s, row) || !render(then, MAX_VALUE, &kept, row))
            rc = sgt_fail_memory(err, "options");
        else if (strcmp(now, then) != 0)
            rc = sgt_fail(err, how->code, "--%s: %.200s here, but it %s %.200s %s", row->name,
                          *now ? now : "not set", how->was, *then ? then : "not set", how->where);
    }
    sgt_config_free(&kept);
    free(now);
    return rc;
}

int sgt_config_same_run(const sgt_config *s, const char *text, int moved, sgt_error *err)
{
    const comparison with_run = {moved ? MAY_CHANGE | DEVICE : MAY_CHANGE, SGT_EUNSUPPORTED, "was",
                                 "in the run to resume (leave it out, or start a new --run)"};
    return compare(s, text, &with_run, err);
}

int sgt_config_same_ranks(const sgt_config *s, const char *text, sgt_error *err)
{
    static const comparison with_rank = {LOCAL | PATH, SGT_EUSAGE, "is",
                                         "on rank 0 (run the same command on all ranks)"};
    return compare(s, text, &with_rank, err);
}
