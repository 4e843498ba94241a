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
    SGT_SET_DATA, SGT_SET_INIT, SGT_SET_MODEL, SGT_SET_LOADER, SGT_SET_SAMPLING, SGT_SET_WORKERS, SGT_SET_DEVICE,
    SGT_SET_THREADS, SGT_SET_CPU, SGT_SET_BATCH, SGT_SET_SEQ, SGT_SET_ACCUM, SGT_SET_STEPS, SGT_SET_LR, SGT_SET_MIN_LR,
    SGT_SET_WARMUP, SGT_SET_SCHEDULE, SGT_SET_OPTIMIZER, SGT_SET_BETAS, SGT_SET_WEIGHT_DECAY, SGT_SET_GRAD_CLIP,
    SGT_SET_DROPOUT, SGT_SET_PRECISION, SGT_SET_GELU, SGT_SET_EVAL_EVERY, SGT_SET_SAVE_EVERY, SGT_SET_KEEP,
    SGT_SET_SEED, SGT_SETTINGS
} sgt_setting;

#define SGT_DEFAULT_COUNT UINT64_MAX /* a count that is yet to be decided */
#define SGT_DEFAULT_REAL (-HUGE_VAL) /* a number that is yet to be decided; no option and no JSON can say it */

typedef struct sgt_settings {
    const char *data, *model, *init; /* init NULL: fresh parameters for `model` */
    const char *loader, *sampling, *device, *cpu, *schedule, *optimizer, *betas, *precision, *gelu;
    uint64_t workers, threads; /* threads: default the cores at hand */
    uint64_t batch, seq, accum;
    uint64_t steps, warmup;
    uint64_t eval_every, save_every, keep; /* 0: never, never, all */
    uint64_t seed;
    double lr, min_lr;
    double weight_decay, grad_clip, dropout;
    int given[SGT_SETTINGS]; /* set by whoever set the field on purpose */
    /* These only help to decide the ones above, and are not kept. */
    double epochs;
    uint64_t lr_base_batch;
    int scale_lr;
    void *owner[2]; /* JSON documents that texts above point into */
} sgt_settings;

void sgt_settings_default(sgt_settings *s);
void sgt_settings_free(sgt_settings *s); /* the texts that sgt_settings_merge made */
const char *sgt_settings_name(sgt_setting which); /* "batch-size" */

/* Whether every value is one we know; SGT_EUSAGE names the option. Needs neither device nor data. */
int sgt_settings_check(const sgt_settings *s, sgt_error *err);
int sgt_settings_betas(const sgt_settings *s, double betas[2], sgt_error *err);

/* Fields of the JSON object `text` into every field of s that was not given. They count as given afterwards where
 * `mark`. At most two calls on one s. `what` begins messages. An unknown name is SGT_EFORMAT. */
int sgt_settings_merge(sgt_settings *s, const char *text, const char *what, int mark, sgt_error *err);

/* As a JSON object, an option a line, the same bytes for the same settings. malloc'd; the caller frees. NULL: out of
 * memory. */
char *sgt_settings_json(const sgt_settings *s);

/* Whether a run kept with the settings `text` may go on with s: SGT_EUNSUPPORTED names the first option that differs
 * and may not (all but steps, device, loader, threads, cpu; data is known by its hash). */
int sgt_settings_same_run(const sgt_settings *s, const char *text, sgt_error *err);

#endif
