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
    /* run directory; NULL: write and announce nothing, for measuring steps only */
    const char *run;
    /* resume: 1: start from the newest checkpoint; force: 1: overwrite an existing run */
    int resume, force;
    /* 1, with resume: if there is no checkpoint, start at step 0 instead of failing */
    int or_start;
    /* 1: if the loss diverges (see advice.h), save and return SGT_EUNSUPPORTED */
    int stop_diverged;
    sgt_notice notice;
    /* called with details, such as the device's speed or the reason for a default */
    sgt_notice detail;
    /* called with problems that are not errors, which even users who want no notices should see */
    sgt_notice warning;
    const char *command; /* command line, recorded in starts.jsonl; NULL: not recorded */
    /* file for a trace of a few steps (see trace.h); NULL: no trace */
    const char *profile;
    /* Called to read prompts and completions if --data names a FILE.jsonl. It tokenizes them with
     * the vocabulary in the folder of the model `model`, which has `vocab` ids, or with GPT-2's if
     * model is NULL. It fills in all fields of *e except `rows` and `order`. Arrays are malloc'd,
     * and sgt_train frees them, even after a failure. NULL: such data is refused. */
    int (*examples)(const char *path, const char *model, uint32_t vocab, sgt_examples *e,
                    sgt_error *err);
    /* Called to compare the vocabulary of the data with that in the folder `path`. Returns 1 if ids
     * stand for the same tokens in both, or if it cannot know: `path` has no vocabulary, or
     * `fingerprint`, which identifies the data's vocabulary, is 0. Returns 0 if they differ, and a
     * negative SGT_E* if a vocabulary is unknown or cannot be read. The data's vocabulary may also
     * be that of the file `tokenizer` (NULL: no such file). path NULL: the vocabulary is the one
     * known by the fingerprint or by its size n. If the result is 1 and `bytes` is not NULL, fills
     * in bytes[n] with the length in bytes of each id's text, 0 for an id without text, such as the
     * end of text. The callback may be NULL: nothing is compared, and validation is not in bits per
     * byte. */
    int (*vocabulary)(const char *path, const char *tokenizer, uint64_t fingerprint,
                      uint32_t *bytes, uint32_t n, sgt_error *err);
    /* cache folder for a device's timing results and verdicts, created if missing; NULL: no
     * cache */
    const char *cache;
    /* program that the self-check of the CUDA paths starts (paths.h); NULL: no self-check */
    const char *checker;
    /* request to stop. When it is raised, sgt_train finishes the step, saves and returns
     * SGT_ESTOPPED. If it is raised in one of several ranks, all ranks do so after the same step */
    const sgt_stop *stop;
    /* The ranks of this run; NULL: only this process. All ranks make the same call with the same
     * settings, and read the same files. Only rank 0 writes to the run directory, and only rank 0
     * should set notice, detail and warning. */
    sgt_ranks *ranks;
    int most_threads; /* upper bound of the default number of threads; 0: none */
    /* bytes that estimates count for the program itself; 0: its current resident memory */
    uint64_t program;
    /* Callbacks, each of which may be NULL. opened is called before the first step, with the
     * backend, which stays open until sgt_train returns. progress is called after every step. line
     * is called with each line that a user may want to keep (about an evaluation or an epoch). */
    void (*opened)(void *ctx, const sgt_backend *b);
    void (*progress)(void *ctx, const sgt_metrics *m, uint64_t steps, uint64_t first);
    void (*line)(void *ctx, const char *line);
    void *ctx;
} sgt_train_options;

/* One data set of a mix, counted since the beginning of the run. */
typedef struct sgt_train_set {
    char *data;    /* path, malloc'd */
    uint64_t rows; /* number of rows trained on; epochs: the same in passes over the set */
    double epochs;
} sgt_train_set;

/* Losses of the steps of one call. */
typedef struct sgt_train_losses {
    /* resumed: number of steps completed before this call; steps: number of steps in this call */
    uint64_t resumed, steps;
    /* first: loss of the first step; mean: mean loss of the last `of` steps */
    double first, mean;
    uint64_t of; /* number of steps in `mean`: 20, or half of the steps if that is fewer */
    /* loss of the last evaluation, and number of steps that the run had completed at that time; 0:
     * none */
    double val;
    double val_bits_per_byte; /* the same in bits per byte of text; 0: unknown */
    uint64_t val_step;
} sgt_train_losses;

typedef struct sgt_training_result {
    char *last;       /* last line of the log, malloc'd; NULL: the log is empty */
    char *checkpoint; /* folder of the newest checkpoint, malloc'd; NULL: there is none */
    uint64_t steps;   /* steps completed, including those before a resume */
    uint64_t train_tokens, val_tokens; /* tokens seen */
    /* documents that began in the training tokens; UINT64_MAX if the data does not mark them */
    uint64_t documents;
    sgt_train_set *sets; /* (set_count) if --data names several sets, else NULL */
    uint32_t set_count;
    /* floating-point operations for training on train_tokens tokens, in petaflop/s-days
     * (sgt_pf_days) */
    double pf_days;
    double seconds; /* duration of this call, including evaluations and checkpoints */
    /* duration of only the steps of this call: the sum of their ms_per_step in log.jsonl, in
     * seconds */
    double step_seconds;
    uint64_t step_peak_bytes; /* peak memory up to the end of the last step, as in log.jsonl */
    sgt_train_losses losses;
    /* peak_bytes: peak memory, including that for writing the last checkpoint; total_bytes: total
     * memory of the machine or device */
    uint64_t peak_bytes, total_bytes;
} sgt_training_result;

/* Train. On return all undecided settings in *s are decided. Checks are made in this order: options
 * (SGT_EUSAGE), device, run, data, model. If a save fails, training continues, and sgt_train
 * returns SGT_EIO after the last step. *r is filled in after SGT_EIO of this kind and after
 * SGT_ESTOPPED, too. */
int sgt_train(sgt_config *s, const sgt_train_options *o, sgt_training_result *r, sgt_error *err);
void sgt_training_result_free(sgt_training_result *r);

typedef struct sgt_train_estimate {
    sgt_model model;
    const char *device; /* "cpu" or "cuda" */
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    size_t count;
    /* total: bytes of all kinds; available: bytes available now, UINT64_MAX if unknown */
    uint64_t total, available;
    /* bytes of the copy from which a checkpoint is written in the background; 0: none. The copy is
     * in host memory. On a CPU it is included in `kinds`; with CUDA it is not */
    uint64_t checkpoint;
} sgt_train_estimate;

/* Estimate the memory of a run with these settings, without running any step. It needs no data. It
 * needs no device if s->device is not auto. On return, settings that depend on the device are
 * decided. */
int sgt_train_estimate_memory(sgt_config *s, const sgt_train_options *o, sgt_train_estimate *e,
                              sgt_error *err);
/* Return how many bytes of an estimate grow with the batch: those of activations and their
 * gradients, logits and data. */
uint64_t sgt_train_estimate_activations(const sgt_train_estimate *e);

#endif
