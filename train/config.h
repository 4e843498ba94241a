/* config.h: the options that define a training run. The command line and --config set them,
 * RUN/options.json stores them, and --resume compares them. Each option has one row in
 * sgt_config_rows and one field in sgt_config. Everything else (--help, completion, defaults, range
 * checks, JSON) is derived from the row.
 *
 *     sgt_config s;
 *     sgt_config_default(&s);
 *     s.data = "out"; s.given[SGT_SET_DATA] = 1; ...
 *     if (sgt_config_check(&s, &err) < 0) ...;
 *     sgt_config_free(&s);
 *
 * A new option needs a member of sgt_setting, a field, a row in config.c, and a paragraph in
 * tools/sgt-train.1. If a backend reads the option, its field must be a member of
 * sgt_backend_options. */
#ifndef SGT_CONFIG_H
#define SGT_CONFIG_H

#include "loader/base/option.h"
#include "train/backend.h"

/* Indexes of the options, in the order in which options.json and each section of --help list
 * them. */
typedef enum sgt_setting {
    SGT_SET_DATA,
    SGT_SET_VAL_DATA,
    SGT_SET_INIT,
    SGT_SET_MODEL,
    SGT_SET_LOADER,
    SGT_SET_SAMPLING,
    SGT_SET_PAD,
    SGT_SET_WORKERS,
    SGT_SET_DEVICE,
    SGT_SET_THREADS,
    SGT_SET_CPU,
    SGT_SET_BATCH,
    SGT_SET_SEQ,
    SGT_SET_ACCUM,
    SGT_SET_STEPS,
    SGT_SET_EPOCHS,
    SGT_SET_BUDGET,
    SGT_SET_LR,
    SGT_SET_LR_BASE_BATCH,
    SGT_SET_SCALE_LR,
    SGT_SET_MIN_LR,
    SGT_SET_WARMUP,
    SGT_SET_SCHEDULE,
    SGT_SET_OPTIMIZER,
    SGT_SET_OPTIMIZER_STATE,
    SGT_SET_BETAS,
    SGT_SET_MOMENTUM,
    SGT_SET_NESTEROV,
    SGT_SET_WEIGHT_DECAY,
    SGT_SET_GRAD_CLIP,
    SGT_SET_SKIP_SPIKES,
    SGT_SET_DROPOUT,
    SGT_SET_IGNORE,
    SGT_SET_PRECISION,
    SGT_SET_LOSS_SCALE,
    SGT_SET_RECOMPUTE,
    SGT_SET_MEMORY_LIMIT,
    SGT_SET_GELU,
    SGT_SET_NO_TIE,
    SGT_SET_DOCUMENT_MASK,
    SGT_SET_ATTENTION,
    SGT_SET_BATCHING,
    SGT_SET_NO_OVERLAP,
    SGT_SET_SYNC_METRICS,
    SGT_SET_NO_FUSE,
    SGT_SET_NO_GRAPHS,
    SGT_SET_SYNC_KERNELS,
    SGT_SET_NO_PAD_VOCAB,
    SGT_SET_VARIANT,
    SGT_SET_DETERMINISTIC,
    SGT_SET_EVAL_EVERY,
    SGT_SET_SAVE_EVERY,
    SGT_SET_KEEP,
    SGT_SET_SEED,
    SGT_SET_OVERFIT,
    SGT_SETTINGS
} sgt_setting;

/* Sections of --help. */
enum {
    SGT_SECTION_DATA = 1,
    SGT_SECTION_RUN,
    SGT_SECTION_MODEL,
    SGT_SECTION_OPTIMIZER,
    SGT_SECTION_MACHINE,
    SGT_SECTION_TECHNIQUES
};

typedef enum sgt_device_kind { SGT_DEVICE_AUTO, SGT_DEVICE_CPU, SGT_DEVICE_CUDA } sgt_device_kind;
/* Value of --recompute for its word "auto". The option's other words have the values of
 * sgt_recompute (0 to 2). With "auto", each layer's recomputation is chosen so that the run fits in
 * the free memory. */
enum { SGT_RECOMPUTE_AUTO = 3 };

/* The values of all options. For an option that takes one of several words, the field holds the
 * word's index, a value of the enumeration that the field's comment names. If a value is not
 * decided yet, its field is NULL or an SGT_DEFAULT_*. */
typedef struct sgt_config {
    /* init: model to start from; NULL: start from new parameters of the shape `model` */
    const char *data, *val_data, *init, *model;
    int loader, sampling; /* loader: an sgt_reader; sampling: an sgt_sampling */
    /* id of the token that pads rows; SGT_DEFAULT_COUNT: the end-of-text id */
    uint64_t pad;
    uint64_t workers;
    int device;       /* sgt_device_kind */
    uint64_t threads; /* undecided: all available cores */
    const char *cpu;
    /* batch: rows per micro-step, over all ranks; seq: tokens per row; accum: micro-steps per
     * step */
    uint64_t batch, seq, accum;
    uint64_t steps;
    double epochs;
    /* Compute budget in petaflop/s-days. If it is set, the number of steps is derived from it, and
     * `epochs` is not used. */
    double budget;
    double lr, min_lr;
    uint64_t lr_base_batch;
    int scale_lr;
    uint64_t warmup;
    int schedule;      /* sgt_schedule_kind */
    const char *betas; /* two numbers separated by a comma */
    /* target id to ignore: targets with this id have no loss; SGT_DEFAULT_COUNT: none is ignored */
    uint64_t ignore;
    int recompute; /* value of --recompute: an sgt_recompute or SGT_RECOMPUTE_AUTO */
    /* Options of the backend. The command line writes many fields of `step` directly, and
     * sgt_config_step and the trainer fill in the others. */
    sgt_backend_options step;
    uint64_t memory_limit; /* bytes; undecided: all free memory */
    /* value of --gelu: an sgt_gelu_kind; SGT_DEFAULT_WORD until the model is known */
    int gelu;
    int no_tie;
    int batching; /* 0: simd, 1: scalar */
    int sync_metrics;
    /* names of variants, separated by commas (backend.h); NULL until the device is known */
    const char *variant;
    /* eval_every: steps between evaluations, 0: never; save_every: steps between checkpoints, 0:
     * never; keep: number of checkpoints to keep, 0: all */
    uint64_t eval_every, save_every, keep;
    uint64_t seed;
    int overfit;
    /* 1: --batch-size auto, which chooses the largest batch that fits in memory; 0: `batch` is the
     * size */
    int batch_auto;
    int given[SGT_SETTINGS]; /* for each option, 1 if the user set it */
    /* JSON array that owns strings to which fields of this struct point */
    void *owners;
    const char *unknown; /* last unknown option name that sgt_config_merge met; NULL: none */
} sgt_config;

/* the table of options, indexed by sgt_setting; its last row has no name */
extern const sgt_option sgt_config_rows[SGT_SETTINGS + 1];

void sgt_config_default(sgt_config *s);
void sgt_config_free(sgt_config *s); /* Free the strings that sgt_config_merge allocated. */

/* Check that every value is within the bounds of its row. If a value is not, return SGT_EUSAGE with
 * a message that names the option. Neither the device nor the data is opened. */
int sgt_config_check(const sgt_config *s, sgt_error *err);
/* Check that the options set by the user can be used together. Call it when all settings are
 * decided. If one of them would have no effect, return SGT_EUSAGE with a message that names the
 * option and the setting that it requires. */
int sgt_config_check_together(const sgt_config *s, sgt_error *err);
/* Return whether --data names a FILE.jsonl of prompts and completions, and not a folder of
 * shards. */
int sgt_config_examples(const sgt_config *s);

/* Fill in the fields of s->step that can be computed from the other settings. The trainer fills in
 * the rest: the model, the callbacks, the ranks, and algorithms selected by timing. If an option is
 * invalid, return SGT_EUSAGE with a message that names it. */
int sgt_config_step(sgt_config *s, sgt_error *err);

/* Resolve the settings whose defaults depend on the device. `bf16`: 1 if the device has hardware
 * for bfloat16 products, so that bf16 becomes the default precision. If the device is a CPU, each
 * option that only CUDA supports is reset to its default. If the user set such an option, the
 * function returns SGT_EUNSUPPORTED with a message that names it. */
int sgt_config_take_device(sgt_config *s, int cuda, int bf16, sgt_error *err);

/* Which options sgt_config_merge copies from a JSON object. */
typedef enum sgt_merge {
    /* all options except --cpu and --memory-limit; used for the options stored in a checkpoint */
    SGT_MERGE_KEPT,
    SGT_MERGE_GIVEN, /* all options, marked as set by the user; used for --config */
    /* only the options that may be changed when a run is resumed, without --cpu and --memory-limit;
     * used for options.json */
    SGT_MERGE_CHANGED,
    /* the options of SGT_MERGE_CHANGED and those that may change with the kind of device; used if a
     * run is resumed on another kind of device */
    SGT_MERGE_MOVED
} sgt_merge;

/* Copy values of the JSON object `text` to those fields of s that the user did not set. Error
 * messages begin with `what`, which names the source of `text`. Return SGT_EFORMAT for an unknown
 * option name, and SGT_EUSAGE for an unknown word as a value.
 *
 * If the user has set a learning rate but no final rate, the default final rate, a tenth of the
 * learning rate in `text`, is not copied. It stays undecided, and will become a tenth of the user's
 * rate. */
int sgt_config_merge(sgt_config *s, const char *text, const char *what, sgt_merge which,
                     sgt_error *err);

/* Return the settings as a JSON object with one option per line. Equal settings give equal bytes.
 * Options are omitted if they are undecided or have no effect, for example momentum with AdamW. The
 * caller frees the text. Return NULL if out of memory. */
char *sgt_config_json(const sgt_config *s);

/* Check that s may resume a run whose settings were stored as the JSON `text`. If an option that
 * must not change has another value, return SGT_EUNSUPPORTED with a message that names the first
 * such option. `moved`: 1 if the run moves to another kind of device, so that options that depend
 * on the device may differ. */
int sgt_config_same_run(const sgt_config *s, const char *text, int moved, sgt_error *err);

/* Check that this rank's settings s agree with rank 0's settings, the JSON `text`. Paths and
 * options that describe the machine may differ. If another option differs, return SGT_EUSAGE with a
 * message that states its name and both values. */
int sgt_config_same_ranks(const sgt_config *s, const char *text, sgt_error *err);

#endif
