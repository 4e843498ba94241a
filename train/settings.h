/* settings.h: the options that define a training run: what the command line sets, what
 * RUN/options.json holds, what --config reads, and what --resume compares. Each is described by one
 * row of sgt_settings_rows and set in one field of sgt_settings; everything else (--help,
 * completion, defaults, range checks, JSON) follows from the row.
 *
 *     sgt_settings s;
 *     sgt_settings_default(&s);
 *     s.data = "out"; s.given[SGT_SET_DATA] = 1; ...
 *     if (sgt_settings_check(&s, &err) < 0) ...;
 *     sgt_settings_free(&s);
 *
 * A new option: its member of sgt_setting, its field, its row in settings.c, and its paragraph in
 * tools/sgt-train.1. If the loop or a backend needs it, sgt_trainer_resolve puts it into the plan
 * (plan.h). */
#ifndef SGT_SETTINGS_H
#define SGT_SETTINGS_H

#include "base/option.h"

/* In the order of --help. */
typedef enum sgt_setting {
    SGT_SET_DATA,
    SGT_SET_VAL_DATA,
    SGT_SET_LOADER,
    SGT_SET_SAMPLING,
    SGT_SET_PAD,
    SGT_SET_WORKERS,
    SGT_SET_STEPS,
    SGT_SET_EPOCHS,
    SGT_SET_BUDGET,
    SGT_SET_EVAL_EVERY,
    SGT_SET_SAVE_EVERY,
    SGT_SET_KEEP,
    SGT_SET_SEED,
    SGT_SET_OVERFIT,
    SGT_SET_MODEL,
    SGT_SET_INIT,
    SGT_SET_SEQ,
    SGT_SET_GELU,
    SGT_SET_DROPOUT,
    SGT_SET_IGNORE,
    SGT_SET_NO_TIE,
    SGT_SET_DOCUMENT_MASK,
    SGT_SET_BATCH,
    SGT_SET_ACCUM,
    SGT_SET_LR,
    SGT_SET_LR_BASE_BATCH,
    SGT_SET_SCALE_LR,
    SGT_SET_MIN_LR,
    SGT_SET_WARMUP,
    SGT_SET_SCHEDULE,
    SGT_SET_OPTIMIZER,
    SGT_SET_BETAS,
    SGT_SET_MOMENTUM,
    SGT_SET_NESTEROV,
    SGT_SET_WEIGHT_DECAY,
    SGT_SET_GRAD_CLIP,
    SGT_SET_SKIP_SPIKES,
    SGT_SET_DEVICE,
    SGT_SET_PRECISION,
    SGT_SET_LOSS_SCALE,
    SGT_SET_RECOMPUTE,
    SGT_SET_MEMORY_LIMIT,
    SGT_SET_THREADS,
    SGT_SET_CPU,
    SGT_SET_DETERMINISTIC,
    SGT_SET_ATTENTION,
    SGT_SET_BATCHING,
    SGT_SET_NO_OVERLAP,
    SGT_SET_SYNC_METRICS,
    SGT_SET_NO_FUSE,
    SGT_SET_NO_GRAPHS,
    SGT_SET_SYNC_KERNELS,
    SGT_SET_NO_PAD_VOCAB,
    SGT_SET_VARIANT,
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
/* after the members of sgt_recompute: memory decides for each layer */
enum { SGT_RECOMPUTE_AUTO = 3 };

/* options.json has its keys in the order of these fields. An option with words holds the number of
 * one, of the enumeration in its comment. What is yet to be decided is NULL or a SGT_DEFAULT_*. */
typedef struct sgt_settings {
    const char *data, *val_data, *init, *model; /* init NULL: fresh parameters for `model` */
    int loader, sampling;                       /* sgt_reader, sgt_sampling */
    uint64_t pad;                               /* undecided: the end-of-text id */
    uint64_t workers;
    int device;       /* sgt_device_kind */
    uint64_t threads; /* undecided: the cores at hand */
    const char *cpu;
    uint64_t batch, seq, accum;
    uint64_t steps;
    double lr, min_lr;
    uint64_t warmup;
    int schedule;      /* sgt_schedule_kind */
    int optimizer;     /* sgt_optim_kind */
    const char *betas; /* two numbers */
    double momentum;
    int nesterov;
    double weight_decay, grad_clip, skip_spikes;
    double dropout;
    uint64_t ignore; /* undecided: no id's targets are ignored */
    /* sgt_precision; undecided until the device is known */
    int precision;
    double loss_scale;
    int recompute;         /* sgt_recompute or SGT_RECOMPUTE_AUTO */
    uint64_t memory_limit; /* bytes; undecided: what is free */
    /* sgt_gelu_kind; undecided until the model is known */
    int gelu;
    int no_tie, document_mask;
    int attention; /* sgt_attention */
    int batching;  /* 0: simd, 1: scalar */
    int no_overlap, sync_metrics, no_fuse, no_graphs, no_pad_vocab;
    /* names (variants.h); undecided until the device is known */
    const char *variant;
    int deterministic;
    uint64_t eval_every, save_every, keep; /* 0: never, never, all */
    uint64_t seed;
    int overfit;
    /* These are not kept. All but the last help to decide those above. */
    double epochs;
    /* PF-days that decide the steps in the place of epochs, or undecided */
    double budget;
    uint64_t lr_base_batch;
    int scale_lr;
    /* an undecided batch is to be the largest that fits */
    int batch_auto;
    int sync_kernels;
    int given[SGT_SETTINGS]; /* set by whoever set the field on purpose */
    void *owner[2];          /* JSON documents that texts above point into */
} sgt_settings;

/* by sgt_setting; the last has no name */
extern const sgt_option sgt_settings_rows[SGT_SETTINGS + 1];

void sgt_settings_default(sgt_settings *s);
void sgt_settings_free(sgt_settings *s); /* the texts that sgt_settings_merge made */

/* Check that every value is within its row's bounds; SGT_EUSAGE names the option. Needs neither
 * device nor data. */
int sgt_settings_check(const sgt_settings *s, sgt_error *err);
/* Check that the options that were given go together, once all of them are known; SGT_EUSAGE names
 * the one that has no use and what it needs. */
int sgt_settings_check_together(const sgt_settings *s, sgt_error *err);
/* Whether `data` is prompts and completions instead of shards: FILE.jsonl. */
int sgt_settings_examples(const sgt_settings *s);
int sgt_settings_betas(const sgt_settings *s, double betas[2], sgt_error *err);

/* Decide what depends on the device. If that is no CUDA device, options that only CUDA has are
 * SGT_EUNSUPPORTED, named, if they were given; those that a run began with elsewhere go back to
 * their defaults. `bf16`: whether the device multiplies bfloat16, which is the default precision
 * then. */
int sgt_settings_take_device(sgt_settings *s, int cuda, int bf16, sgt_error *err);

/* Copy the fields of the JSON object `text` into every field of s that was not given; they count as
 * given afterwards if `mark`. At most two calls on one s. `what` begins messages. An unknown name
 * is SGT_EFORMAT, a word that is none of an option's SGT_EUSAGE. */
int sgt_settings_merge(sgt_settings *s, const char *text, const char *what, int mark,
                       sgt_error *err);

/* As a JSON object, an option a line, the same bytes for the same settings; without options that
 * are not set, or have no use beside the others (momentum with AdamW). malloc'd; the caller frees.
 * NULL: out of memory. */
char *sgt_settings_json(const sgt_settings *s);

/* Check that a run kept with the settings `text` may go on with s: SGT_EUNSUPPORTED names the first
 * option that differs and may not. `moved`: the run moves to another device, so that what only one
 * device has may differ too. */
int sgt_settings_same_run(const sgt_settings *s, const char *text, int moved, sgt_error *err);

#endif
