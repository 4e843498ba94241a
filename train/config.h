/* config.h: the options of a training run. The command line and --config set them, RUN/options.json
 * stores them, and --resume compares them with the stored ones. Each option has one row in
 * sgt_config_rows and one field in sgt_config. --help, completion, defaults, range checks and JSON
 * are all derived from the row.
 *
 *     sgt_config s;
 *     sgt_config_default(&s);
 *     s.data = "out";
 *     s.given[SGT_SET_DATA] = 1;
 *     ...
 *     if (sgt_config_check(&s, &err) < 0) ...;
 *     sgt_config_free(&s);
 *
 * To add an option, add a member to sgt_setting, a field, a row in config.c, and a paragraph in
 * tools/sgt-train.1. If a backend reads the option, its field must belong to
 * sgt_backend_options. */
#ifndef SGT_CONFIG_H
#define SGT_CONFIG_H

#include "loader/base/option.h"
#include "train/backend.h"

/* Indexes of the options. Options are listed in this order in options.json and in each section of
 * --help. */
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
/* Value of sgt_config.recompute for --recompute auto, which chooses for each layer what to
 * recompute, so that the run fits in the free memory. The other values are those of sgt_recompute
 * (0 to 2). */
enum { SGT_RECOMPUTE_AUTO = 3 };

/* The values of all options. If an option takes a word, its field holds the index of the word,
 * which is a value of the enumeration named in the field's comment. Until a value is decided, its
 * field is NULL or an SGT_DEFAULT_*. */
typedef struct sgt_config {
    /* data: training data; val_data: validation data; init: model to start from, NULL: new
     * parameters for a model of the shape `model` */
    const char *data, *val_data, *init, *model;
    int loader, sampling; /* loader: an sgt_reader; sampling: an sgt_sampling */
    /* id of the token with which rows are padded; SGT_DEFAULT_COUNT: the end-of-text id */
    uint64_t pad;
    uint64_t workers;
    int device;       /* sgt_device_kind */
    uint64_t threads; /* undecided: all available cores */
    const char *cpu;
    /* batch: rows per micro-step, summed over all ranks; seq: tokens per row; accum: micro-steps
     * per step */
    uint64_t batch, seq, accum;
    uint64_t steps;
    double epochs;
    /* Compute budget in petaflop/s-days. If it is set, it determines the number of steps, and
     * `epochs` is not used. */
    double budget;
    double lr, min_lr;
    uint64_t lr_base_batch;
    int scale_lr;
    uint64_t warmup;
    int schedule;      /* sgt_schedule_kind */
    const char *betas; /* two numbers separated by a comma */
    /* target id to ignore: targets with this id do not contribute to the loss; SGT_DEFAULT_COUNT:
     * no id is ignored */
    uint64_t ignore;
    int recompute; /* value of --recompute: an sgt_recompute or SGT_RECOMPUTE_AUTO */
    /* Options that the backend reads. The command line sets many fields of `step` directly;
     * sgt_config_step and the trainer fill in the others. */
    sgt_backend_options step;
    uint64_t memory_limit; /* bytes; undecided: all free memory */
    /* value of --gelu, an sgt_gelu_kind; SGT_DEFAULT_WORD until the model is known */
    int gelu;
    int no_tie;
    int batching; /* 0: simd, 1: scalar */
    int sync_metrics;
    /* names of CUDA variants (see backend.h), separated by commas; NULL until the device is
     * known */
    const char *variant;
    /* eval_every: number of steps between evaluations, 0: no evaluations; save_every: number of
     * steps between checkpoints, 0: only at the end; keep: number of checkpoints to keep, 0: all */
    uint64_t eval_every, save_every, keep;
    uint64_t seed;
    int overfit;
    /* 1: choose the largest batch that fits in memory (--batch-size auto); 0: use `batch` */
    int batch_auto;
    int given[SGT_SETTINGS]; /* for each option, 1 if the user set it */
    /* array of JSON objects that own the strings to which fields of this struct point; NULL:
     * none */
    void *owners;
    const char *unknown; /* unknown option name for which sgt_config_merge failed; NULL: none */
} sgt_config;

/* The table of options, indexed by sgt_setting. The last row has the name NULL and ends the
 * table. */
extern const sgt_option sgt_config_rows[SGT_SETTINGS + 1];

void sgt_config_default(sgt_config *s);
void sgt_config_free(sgt_config *s); /* Free the strings that sgt_config_merge allocated. */

/* Check that each value is within the bounds in its row of the option table. If one is not, return
 * SGT_EUSAGE with a message that names the option. This function opens neither the device nor the
 * data. */
int sgt_config_check(const sgt_config *s, sgt_error *err);
/* Check that each option that the user has set has an effect with the other settings. Call this
 * function when all settings are decided. If an option has no effect, return SGT_EUSAGE with a
 * message that names the option and the setting that it needs. */
int sgt_config_check_together(const sgt_config *s, sgt_error *err);
/* Return 1 if --data names a FILE.jsonl of prompts and completions, or 0 if it names a folder of
 * shards. */
int sgt_config_examples(const sgt_config *s);

/* Fill in those fields of s->step that follow from the other settings. The trainer fills in the
 * rest: the model, the callbacks, the ranks and the algorithms that timing has selected. If an
 * option is invalid, return SGT_EUSAGE with a message that names the option. */
int sgt_config_step(sgt_config *s, sgt_error *err);

/* Decide the settings whose defaults depend on the device. `cuda`: 1 if the device is a GPU, 0 if
 * it is a CPU. `bf16`: 1 if the device multiplies bfloat16 in hardware, which makes bf16 the
 * default precision. On a CPU, each option that needs CUDA is reset to its default; if the user set
 * such an option, return SGT_EUNSUPPORTED with a message that names the option. */
int sgt_config_take_device(sgt_config *s, int cuda, int bf16, sgt_error *err);

/* Which options sgt_config_merge copies from the JSON object. */
typedef enum sgt_merge {
    /* all options except --cpu and --memory-limit, used to read the options in a checkpoint */
    SGT_MERGE_KEPT,
    SGT_MERGE_GIVEN, /* all options, marked as set by the user; used to read the file of --config */
    /* only options that a resumed run may change, except --cpu and --memory-limit; used to read
     * options.json */
    SGT_MERGE_CHANGED,
    /* like SGT_MERGE_CHANGED, plus options that may change with the kind of device; used if a run
     * resumes on another kind of device */
    SGT_MERGE_MOVED
} sgt_merge;

/* Copy values from the JSON object `text` to the fields of `s`, except for options that the user
 * has set. Error messages begin with `what`, which names the source of `text`. Return SGT_EFORMAT
 * for an unknown option name, and SGT_EUSAGE for a value that is not one of the option's words.
 *
 * The default of the final learning rate is a tenth of the learning rate. If the user has set a
 * learning rate but no final rate, and the final rate in `text` is that default, it is not copied:
 * it stays undecided, and later becomes a tenth of the user's learning rate. */
int sgt_config_merge(sgt_config *s, const char *text, const char *what, sgt_merge which,
                     sgt_error *err);

/* Return the settings as a JSON object with one option per line, or NULL if out of memory. The
 * caller must free the string. Options that are undecided or have no effect (such as momentum with
 * AdamW) are omitted. Equal settings give byte-identical strings. */
char *sgt_config_json(const sgt_config *s);

/* Check that a run with the stored settings `text` (JSON) can be resumed with the settings `s`. If
 * an option has changed that must not change, return SGT_EUNSUPPORTED with a message that names the
 * first such option. `moved`: 1 if the run resumes on another kind of device, so that options that
 * depend on the device may change. */
int sgt_config_same_run(const sgt_config *s, const char *text, int moved, sgt_error *err);

/* Check that the settings `s` of this rank agree with `text`, the settings of rank 0 as JSON.
 * Paths, and options that describe the machine, may differ. If any other option differs, return
 * SGT_EUSAGE with a message that states the option and both values. */
int sgt_config_same_ranks(const sgt_config *s, const char *text, sgt_error *err);

#endif
