/* settings.h: everything that defines a training run, as the command line names it: what RUN/options.json holds, what
 * --config reads, and what --resume holds a new command against.
 *
 *     sgt_settings s;
 *     sgt_settings_default(&s);
 *     s.data = "out"; s.given[SGT_SET_DATA] = 1; ...
 *     if (sgt_settings_check(&s, &err) < 0) ...;
 *     sgt_settings_free(&s); */
#ifndef SGT_SETTINGS_H
#define SGT_SETTINGS_H

#include <math.h>
#include <stdint.h>

#include "base/error.h"

typedef enum sgt_setting {
    SGT_SET_DATA, SGT_SET_VAL_DATA, SGT_SET_INIT, SGT_SET_MODEL, SGT_SET_LOADER, SGT_SET_SAMPLING, SGT_SET_PAD,
    SGT_SET_WORKERS, SGT_SET_DEVICE,
    SGT_SET_THREADS, SGT_SET_CPU, SGT_SET_BATCH, SGT_SET_SEQ, SGT_SET_ACCUM, SGT_SET_STEPS, SGT_SET_LR, SGT_SET_MIN_LR,
    SGT_SET_WARMUP, SGT_SET_SCHEDULE, SGT_SET_OPTIMIZER, SGT_SET_BETAS, SGT_SET_MOMENTUM, SGT_SET_NESTEROV,
    SGT_SET_WEIGHT_DECAY, SGT_SET_GRAD_CLIP, SGT_SET_SKIP_SPIKES, SGT_SET_DROPOUT, SGT_SET_IGNORE,
    SGT_SET_PRECISION, SGT_SET_LOSS_SCALE,
    SGT_SET_RECOMPUTE, SGT_SET_MEMORY_LIMIT, SGT_SET_GELU, SGT_SET_NO_TIE, SGT_SET_DOCUMENT_MASK, SGT_SET_ATTENTION,
    SGT_SET_BATCHING, SGT_SET_NO_OVERLAP,
    SGT_SET_SYNC_METRICS, SGT_SET_NO_FUSE, SGT_SET_NO_GRAPHS, SGT_SET_NO_PAD_VOCAB, SGT_SET_VARIANT,
    SGT_SET_DETERMINISTIC,
    SGT_SET_EVAL_EVERY, SGT_SET_SAVE_EVERY, SGT_SET_KEEP, SGT_SET_SEED, SGT_SET_OVERFIT, SGT_SETTINGS
} sgt_setting;

#define SGT_DEFAULT_COUNT UINT64_MAX /* a count that is yet to be decided */
#define SGT_DEFAULT_REAL (-HUGE_VAL) /* a number that is yet to be decided; no option and no JSON can say it */

typedef struct sgt_settings {
    const char *data, *val_data, *model, *init; /* init NULL: fresh parameters for `model` */
    const char *loader, *batching, *sampling, *device, *cpu, *schedule, *optimizer, *betas, *gelu;
    const char *precision; /* NULL: yet to be decided, by the device */
    const char *recompute, *attention;
    const char *variant; /* names (variants.h); NULL: yet to be decided, by the device */
    uint64_t workers, threads; /* threads: default the cores at hand */
    uint64_t batch, seq, accum;
    uint64_t steps, warmup;
    uint64_t eval_every, save_every, keep; /* 0: never, never, all */
    uint64_t seed;
    uint64_t pad;    /* the id that short documents are padded with; SGT_DEFAULT_COUNT: the end-of-text id */
    uint64_t memory_limit; /* bytes; SGT_DEFAULT_COUNT: what is to be had */
    uint64_t ignore; /* the id whose targets have no loss; SGT_DEFAULT_COUNT: none */
    double lr, min_lr;
    double momentum, weight_decay, grad_clip, skip_spikes, dropout, loss_scale;
    int document_mask;
    int nesterov, no_tie, no_overlap, sync_metrics, no_fuse, no_graphs, no_pad_vocab, deterministic, overfit;
    int given[SGT_SETTINGS]; /* set by whoever set the field on purpose */
    /* These only help to decide the ones above, and are not kept. */
    double epochs;
    double budget; /* PF-days that decide the steps in the place of epochs; 0: they do not */
    uint64_t lr_base_batch;
    int scale_lr;
    int batch_auto; /* where batch is SGT_DEFAULT_COUNT: the largest that fits */
    void *owner[2]; /* JSON documents that texts above point into */
} sgt_settings;

void sgt_settings_default(sgt_settings *s);
void sgt_settings_free(sgt_settings *s); /* the texts that sgt_settings_merge made */
const char *sgt_settings_name(sgt_setting which); /* "batch-size" */

/* Whether every value is one we know; SGT_EUSAGE names the option. Needs neither device nor data. */
int sgt_settings_check(const sgt_settings *s, sgt_error *err);
/* Whether the options that were given go together, once all of them are known; SGT_EUSAGE names the one that has no use
 * and what it needs. */
int sgt_settings_check_together(const sgt_settings *s, sgt_error *err);
/* Whether `data` is prompts and completions instead of shards: FILE.jsonl. */
int sgt_settings_examples(const sgt_settings *s);
int sgt_settings_betas(const sgt_settings *s, double betas[2], sgt_error *err);

/* Decides what depends on the device. Where that is no CUDA device, options that only CUDA has are SGT_EUNSUPPORTED,
 * named, if they were given; those that a run began with elsewhere go back to their defaults. `bf16`: whether the
 * device multiplies bfloat16, which is the default precision then. */
int sgt_settings_take_device(sgt_settings *s, int cuda, int bf16, sgt_error *err);

/* Fields of the JSON object `text` into every field of s that was not given. They count as given afterwards where
 * `mark`. At most two calls on one s. `what` begins messages. An unknown name is SGT_EFORMAT. */
int sgt_settings_merge(sgt_settings *s, const char *text, const char *what, int mark, sgt_error *err);

/* As a JSON object, an option a line, the same bytes for the same settings; without options that are not set, or have
 * no use beside the others (momentum with AdamW). malloc'd; the caller frees. NULL: out of memory. */
char *sgt_settings_json(const sgt_settings *s);

/* Whether a run kept with the settings `text` may go on with s: SGT_EUNSUPPORTED names the first option that differs
 * and may not (all but steps, device, loader, threads, cpu; data is known by its hash; where the run moves to another
 * device, precision and what only one device has may differ too). */
int sgt_settings_same_run(const sgt_settings *s, const char *text, int moved, sgt_error *err);

#endif
