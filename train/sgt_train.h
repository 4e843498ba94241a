/* sgt_train.h: trains GPT-2 on shards; the library behind sgt-train.
 *
 *     sgt_config s;
 *     sgt_training_result r;
 *     sgt_config_default(&s);
 *     s.data = "out";
 *     s.model = "4x256x4";
 *     sgt_train_options o = {.run = "run"};
 *     if (sgt_train(&s, &o, &r, &err) < 0) fprintf(stderr, "%s\n", err.text);
 *     sgt_training_result_free(&r);
 *     sgt_config_free(&s);
 *
 * run.h describes the run directory, checkpoint.h a checkpoint. */
#ifndef SGT_TRAIN_H
#define SGT_TRAIN_H

#include "train/backend.h"
#include "loader/base/error.h"
#include "loader/base/ranks.h"
#include "train/data/feed.h"
#include "train/log/metrics.h"
#include "train/config.h"

typedef struct sgt_train_options {
    /* run directory; NULL: nothing is written or announced, because steps are only measured */
    const char *run;
    /* resume: start from the newest checkpoint; force: overwrite an existing run */
    int resume, force;
    /* with resume: start at step 0 if there is no checkpoint, instead of failing */
    int or_start;
    /* 1: once the loss has diverged (see advice.h), save and return SGT_EUNSUPPORTED */
    int stop_diverged;
    sgt_notice notice;
    /* called with details, such as the device's speed or the reason for a default */
    sgt_notice detail;
    /* called with problems that are not errors; wanted even by users who want no notices */
    sgt_notice warning;
    const char *command; /* command line, recorded in starts.jsonl; NULL: not recorded */
    /* file for a trace of a few steps (see trace.h); NULL: no trace */
    const char *profile;
    /* Reads prompts and completions if --data names a FILE.jsonl, as tokens of the vocabulary
     * beside the model at `model`, which has `vocab` ids; model NULL: of GPT-2's. It fills in all
     * fields of *e except `rows` and `order` with malloc'd arrays, which sgt_train frees, even
     * after a failure. NULL: such data is refused. */
    int (*examples)(const char *path, const char *model, uint32_t vocab, sgt_examples *e,
                    sgt_error *err);
    /* Returns whether the ids of data stand for the same tokens in the vocabulary in the folder
     * `path`; 1 also if that has none. The data's vocabulary has this fingerprint (0: unknown, so 1)
     * and may be that of the file `tokenizer` (NULL: there is none). If the result is 1 and `bytes`
     * is not NULL, fills in bytes[n] with the bytes of each id's text, 0 for an id without a text,
     * such as the end of text. path NULL: the vocabulary is the one that is known by the fingerprint
     * or by n. A negative SGT_E* if the vocabulary is unknown or cannot be read. NULL: nothing is
     * compared, and validation is not in bits per byte. */
    int (*vocabulary)(const char *path, const char *tokenizer, uint64_t fingerprint,
                      uint32_t *bytes, uint32_t n, sgt_error *err);
    /* cache folder for a device's timing results and verdicts, created if missing; NULL: no
     * cache */
    const char *cache;
    /* program that the self-check of the CUDA paths starts (paths.h); NULL: no self-check */
    const char *checker;
    /* request to stop: sgt_train then finishes the step, saves and returns SGT_ESTOPPED; if one of
     * several ranks is asked, all do so after the same step */
    const sgt_stop *stop;
    /* The processes of this run, each of which makes the same call with the same settings; NULL:
     * only this process. All ranks read the same files. Only rank 0 writes to the run directory,
     * and only its call should have notices. */
    sgt_ranks *ranks;
    int most_threads; /* upper bound of the default number of threads; 0: none */
    /* bytes that estimates count for the program itself; 0: those that it has in memory */
    uint64_t program;
    /* opened is called before the first step, with a backend that stays open until sgt_train
     * returns; progress after every step; line with each line that is worth keeping (an evaluation,
     * an epoch). Each may be NULL. */
    void (*opened)(void *ctx, const sgt_backend *b);
    void (*progress)(void *ctx, const sgt_metrics *m, uint64_t steps, uint64_t first);
    void (*line)(void *ctx, const char *line);
    void *ctx;
} sgt_train_options;

/* One data set of a mix, counted since the beginning of the run. */
typedef struct sgt_train_set {
    char *data;    /* path, malloc'd */
    uint64_t rows; /* rows: rows trained on; epochs: the same number as passes over the set */
    double epochs;
} sgt_train_set;

/* Losses of the steps of one call. */
typedef struct sgt_train_losses {
    /* resumed: steps completed before this call; steps: those that it made */
    uint64_t resumed, steps;
    /* first: loss of the first step; mean: of the losses of the last `of` steps */
    double first, mean;
    uint64_t of; /* number of steps in `mean`: 20, or half of the steps if that is fewer */
    /* loss of the last evaluation, and how many steps the run had made then; 0: none */
    double val;
    double val_bits_per_byte; /* the same in bits per byte of text; 0: unknown */
    uint64_t val_step;
} sgt_train_losses;

typedef struct sgt_training_result {
    char *last;       /* last line of the log, malloc'd; NULL: no step was made */
    char *checkpoint; /* folder of the newest checkpoint, malloc'd; NULL: there is none */
    uint64_t steps;   /* steps completed, including those before a resume */
    uint64_t train_tokens, val_tokens; /* tokens seen */
    /* documents that began in the training tokens; UINT64_MAX if the data does not mark them */
    uint64_t documents;
    sgt_train_set *sets; /* (set_count) if --data names several sets, else NULL */
    uint32_t set_count;
    /* compute of the training on train_tokens tokens, counted as 6 N D (metrics.h) */
    double pf_days;
    double seconds; /* duration of this call, including evaluations and checkpoints */
    /* duration of this call's steps alone: the sum of their ms_per_step in log.jsonl */
    double step_seconds;
    uint64_t step_peak_bytes; /* peak memory up to the end of the last step, as in log.jsonl */
    sgt_train_losses losses;
    /* peak_bytes: peak memory, including the last checkpoint's; total_bytes: memory of the machine
     * or device */
    uint64_t peak_bytes, total_bytes;
} sgt_training_result;

/* Train. On return every default in *s is decided. Checks come in this order: options (SGT_EUSAGE),
 * device, run, data, model. If saves fail, training continues, and returns SGT_EIO after its last
 * step. *r is filled in then, and on SGT_ESTOPPED too. */
int sgt_train(sgt_config *s, const sgt_train_options *o, sgt_training_result *r, sgt_error *err);
void sgt_training_result_free(sgt_training_result *r);

typedef struct sgt_train_estimate {
    sgt_model model;
    const char *device; /* "cpu" or "cuda" */
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    size_t count;
    /* total: bytes of all kinds; available: bytes available now, UINT64_MAX if unknown */
    uint64_t total, available;
    /* bytes of the copy that a checkpoint is written from in the background; 0: none. The copy is
     * in host memory: one of the kinds on a CPU, in addition to them with CUDA. */
    uint64_t checkpoint;
} sgt_train_estimate;

/* Estimate the memory that the steps of such a run would hold, without running any. It needs no
 * data, and no device if s names one. On return, settings that depend on the device are decided. */
int sgt_train_estimate_memory(sgt_config *s, const sgt_train_options *o, sgt_train_estimate *e,
                              sgt_error *err);
/* Return the bytes in an estimate that grow with the batch: activations and their gradients, logits
 * and data. */
uint64_t sgt_train_estimate_activations(const sgt_train_estimate *e);

#endif
