/* config.h: the options that define a training run: they are set by the command line and --config,
 * stored in RUN/options.json, and compared by --resume. Each option has one row in sgt_config_rows
 * and one field in sgt_config. Everything else (--help, completion, defaults, range checks, JSON)
 * is derived from the row.
 *
 *     sgt_config s;
 *     sgt_config_default(&s);
 *     s.data = "out"; s.given[SGT_SET_DATA] = 1; ...
 *     if (sgt_config_check(&s, &err) < 0) ...;
 *     sgt_config_free(&s);
 *
 * A new option needs a member of sgt_setting, a field, a row in config.c, and a paragraph in
 * tools/sgt-train.1. If a backend reads the option, its field is a member of
 * sgt_backend_options. */
#ifndef SGT_CONFIG_H
#define SGT_CONFIG_H

#include "loader/base/option.h"
#include "train/backend.h"

/* The options, in the order of options.json and of each section of --help. */
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
/* index of the word "auto" of --recompute, after the members of sgt_recompute: free memory decides
 * for each layer */
enum { SGT_RECOMPUTE_AUTO = 3 };

/* The values of the options. The value of an option with words is the index of the word, a member
 * of the enumeration in the field's comment. An undecided field is NULL or an SGT_DEFAULT_*. */
typedef struct sgt_config {
    /* init NULL: train new parameters of the shape `model` */
    const char *data, *val_data, *init, *model;
    int loader, sampling; /* loader: sgt_reader; sampling: sgt_sampling */
    uint64_t pad;         /* id of padding; undecided: the end-of-text id */
    uint64_t workers;
    int device;       /* sgt_device_kind */
    uint64_t threads; /* undecided: all available cores */
    const char *cpu;
    uint64_t batch, seq, accum; /* batch: rows of a micro-step, over all ranks */
    uint64_t steps;
    double epochs;
    /* compute budget in PF-days, which determines the number of steps instead of `epochs`; or
     * undecided */
    double budget;
    double lr, min_lr;
    uint64_t lr_base_batch;
    int scale_lr;
    uint64_t warmup;
    int schedule;      /* sgt_schedule_kind */
    const char *betas; /* two numbers separated by a comma */
    uint64_t ignore;   /* id of targets without a loss; undecided: none */
    int recompute;     /* sgt_recompute or SGT_RECOMPUTE_AUTO */
    /* Options of the backend, which the command line writes directly. sgt_config_step and the
     * trainer fill in the other fields of `step`. */
    sgt_backend_options step;
    uint64_t memory_limit; /* bytes; undecided: all free memory */
    /* sgt_gelu_kind; undecided until the model is known */
    int gelu;
    int no_tie;
    int batching; /* 0: simd, 1: scalar */
    int sync_metrics;
    /* names of variants (backend.h), separated by commas; undecided until the device is known */
    const char *variant;
    /* eval_every: steps, 0: never; save_every: steps, 0: never; keep: checkpoints, 0: all */
    uint64_t eval_every, save_every, keep;
    uint64_t seed;
    int overfit;
    /* 1: choose the largest batch that fits in memory */
    int batch_auto;
    int given[SGT_SETTINGS]; /* 1 for each option that the user set */
    void *owners;            /* JSON documents that own some of the texts above */
    const char *unknown;     /* last name in such a document that is not an option; NULL: none */
} sgt_config;

/* the rows, indexed by sgt_setting; ends with a row without a name */
extern const sgt_option sgt_config_rows[SGT_SETTINGS + 1];

void sgt_config_default(sgt_config *s);
void sgt_config_free(sgt_config *s); /* free the texts that sgt_config_merge allocated */

/* Check that every value is within its row's bounds. Returns SGT_EUSAGE if one is not; the message
 * names the option. Needs neither device nor data. */
int sgt_config_check(const sgt_config *s, sgt_error *err);
/* Check that the given options work together. Call it when all settings are known. Returns
 * SGT_EUSAGE if an option has no effect; the message names the option and what it requires. */
int sgt_config_check_together(const sgt_config *s, sgt_error *err);
/* Return whether `data` is a FILE.jsonl of prompts and completions, not a folder of shards. */
int sgt_config_examples(const sgt_config *s);

/* Set the fields of s->step that follow from the other settings. This excludes the model, the rows,
 * the outputs, and what is decided by timing. Returns SGT_EUSAGE if an option is invalid; the
 * message names it. */
int sgt_config_step(sgt_config *s, sgt_error *err);

/* Decide the settings that depend on the device. `bf16`: 1 if the device multiplies bfloat16 in
 * hardware, which makes bf16 the default precision. Without CUDA, an option that requires CUDA is
 * reset to its default if it came from a resumed run. If the user gave it, returns
 * SGT_EUNSUPPORTED; the message names the option. */
int sgt_config_take_device(sgt_config *s, int cuda, int bf16, sgt_error *err);

/* Which values of a JSON object are copied to settings. */
typedef enum sgt_merge {
    SGT_MERGE_KEPT,  /* all but --cpu and --memory-limit; for the checkpoint to resume */
    SGT_MERGE_GIVEN, /* all, and they then count as given; for --config */
    /* of SGT_MERGE_KEPT, only those that --resume may change; for options.json */
    SGT_MERGE_CHANGED,
    SGT_MERGE_MOVED /* the same, and also those that may change with the kind of device */
} sgt_merge;

/* Copy values of the JSON object `text` to the fields of s that were not given. If the learning
 * rate was given, and the final rate in `text` is a tenth of the rate in `text`, the final rate
 * becomes undecided. Messages begin with `what`. Returns SGT_EFORMAT for an unknown name, and
 * SGT_EUSAGE for an unknown word of an option. */
int sgt_config_merge(sgt_config *s, const char *text, const char *what, sgt_merge which,
                     sgt_error *err);

/* Return the settings as a JSON object, one option per line. Equal settings give equal bytes.
 * Options that are undecided, or have no effect with the other settings (momentum with AdamW), are
 * left out. The caller frees the text. Returns NULL if out of memory. */
char *sgt_config_json(const sgt_config *s);

/* Check that a run whose settings were written as `text` may be resumed with s. Returns
 * SGT_EUNSUPPORTED if an option differs that must not; the message names the first one. `moved`: 1
 * if the run moves to another kind of device, so that options that depend on the device may differ,
 * too. */
int sgt_config_same_run(const sgt_config *s, const char *text, int moved, sgt_error *err);

/* Check that s, the settings of this rank, agree with `text`, the settings of rank 0. Paths and
 * properties of the machine may differ. Returns SGT_EUSAGE if another option differs; the message
 * has the name of the first one and both values. */
int sgt_config_same_ranks(const sgt_config *s, const char *text, sgt_error *err);

#endif
