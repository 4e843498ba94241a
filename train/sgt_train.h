/* sgt_train.h: the library behind sgt-train, which trains GPT-2 on shards (files of token ids).
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
 * run.h describes the run directory, and checkpoint.h the files of a checkpoint. */
#ifndef SGT_TRAIN_H
#define SGT_TRAIN_H

#include "train/backend.h"
#include "loader/base/error.h"
#include "loader/base/ranks.h"
#include "train/data/feed.h"
#include "train/log/metrics.h"
#include "train/config.h"

typedef struct sgt_train_options {
    /* run directory; NULL: write no files and print no notices, as benchmarks of steps do */
    const char *run;
    /* resume = 1: start from the newest checkpoint; force = 1: overwrite an existing run */
    int resume, force;
    /* 1: if there is no checkpoint to resume from, start at step 0; 0: fail */
    int or_start;
    /* 1: if the loss diverges (see advice.h), save a checkpoint and return SGT_EUNSUPPORTED; 0:
     * continue */
    int stop_diverged;
    sgt_notice notice;
    /* callback for detailed messages, such as the device's speed or the reason for a default */
    sgt_notice detail;
    /* callback for warnings, which report problems that do not end the run; a program shows them
     * even if the user has turned notices off */
    sgt_notice warning;
    const char *command; /* command line, recorded in starts.jsonl; NULL: not recorded */
    /* file to which a trace of a few steps is written (see trace.h); NULL: no trace */
    const char *profile;
    /* Callback that reads prompts and completions if --data names a FILE.jsonl. It tokenizes them
     * with the vocabulary in the folder `model`, which has `vocab` ids, or with GPT-2's vocabulary
     * if `model` is NULL. It fills in all fields of *e except `rows` and `order`. It allocates
     * arrays with malloc, and sgt_train frees them, even after a failure. If the callback is NULL,
     * a FILE.jsonl is an error. */
    int (*examples)(const char *path, const char *model, uint32_t vocab, sgt_examples *e,
                    sgt_error *err);
    /* Callback that compares the vocabulary of the data with the vocabulary in the folder `path`.
     * NULL: vocabularies are not compared, and validation losses are not reported in bits per byte.
     * It returns:
     * - 1 if each id stands for the same token in both
     * - 1 if it cannot tell: `path` has no vocabulary, or `fingerprint` is 0
     * - 0 if the vocabularies differ
     * - a negative SGT_E* if a vocabulary is unknown or cannot be read
     *
     * `fingerprint` identifies the data's vocabulary, which has n ids. `tokenizer` names a file
     * with it; NULL: there is no such file. If `path` is NULL, the vocabulary is found by its
     * fingerprint or by n. If the result is 1 and `bytes` is not NULL, the callback fills in the n
     * elements of `bytes`, the length in bytes of each id's text: 0 for an id without text, such as
     * the end of text. */
    int (*vocabulary)(const char *path, const char *tokenizer, uint64_t fingerprint,
                      uint32_t *bytes, uint32_t n, sgt_error *err);
    /* cache folder for the CPU's measured peak speed and self-check verdicts, created if missing;
     * NULL: no cache */
    const char *cache;
    /* program that the self-check of the CUDA backend starts (paths.h); NULL: no self-check */
    const char *checker;
    /* Request to stop. When it is raised, sgt_train finishes the current step, saves a checkpoint
     * and returns SGT_ESTOPPED. If the request is raised in any rank, all ranks stop after the same
     * step. */
    const sgt_stop *stop;
    /* The ranks of this run; NULL: this process runs without ranks. All ranks must make the same
     * call with the same settings, and read the same files. Only rank 0 writes to the run
     * directory, and only rank 0 should set notice, detail and warning. */
    sgt_ranks *ranks;
    int most_threads; /* upper limit for the number of CPU threads chosen by default; 0: no limit */
    /* bytes of memory that the program uses apart from training, to be included in memory
     * estimates; 0: the current resident memory of the process */
    uint64_t program;
    /* Callbacks, each of which may be NULL. `opened` is called before the first step with the
     * backend, which stays open until sgt_train returns. `progress` is called after every step.
     * `line` is called with each line that a user may want to keep, for example about an evaluation
     * or an epoch. */
    void (*opened)(void *ctx, const sgt_backend *b);
    void (*progress)(void *ctx, const sgt_metrics *m, uint64_t steps, uint64_t first);
    void (*line)(void *ctx, const char *line);
    void *ctx;
} sgt_train_options;

/* One of the data sets that are mixed for training. Both counts start at the beginning of the
 * run. */
typedef struct sgt_train_set {
    char *data; /* path, malloc'd */
    /* rows: number of rows of the set that were trained on; epochs: number of passes over the set:
     * `rows` divided by the set's number of rows */
    uint64_t rows;
    double epochs;
} sgt_train_set;

/* Losses of the steps of one call. */
typedef struct sgt_train_losses {
    /* resumed: number of steps completed before this call; steps: number of steps in this call */
    uint64_t resumed, steps;
    /* first: loss of this call's first step; mean: mean loss of the last `of` steps */
    double first, mean;
    /* number of steps whose losses are averaged in `mean`: 20, or half of this call's steps if that
     * is fewer */
    uint64_t of;
    /* validation loss of the latest evaluation; 0: there was none */
    double val;
    double val_bits_per_byte; /* `val` converted to bits per byte of text; 0: unknown */
    uint64_t val_step;        /* steps that the run had completed when `val` was measured */
} sgt_train_losses;

typedef struct sgt_training_result {
    char *last;       /* last line of the log, malloc'd; NULL: the log is empty */
    char *checkpoint; /* folder of the newest checkpoint, malloc'd; NULL: there is none */
    uint64_t steps;   /* steps completed since the run began, including those before a resume */
    uint64_t train_tokens, val_tokens; /* tokens seen */
    /* number of documents that begin in the tokens trained on; UINT64_MAX: unknown, because the
     * data does not mark where documents begin */
    uint64_t documents;
    sgt_train_set *sets; /* array of set_count data sets if --data names several, else NULL */
    uint32_t set_count;
    /* compute for training this model on train_tokens tokens, in petaflop/s-days (sgt_pf_days) */
    double pf_days;
    double seconds; /* duration of this call in seconds, including evaluations and checkpoints */
    /* time spent in the steps of this call, in seconds: the sum of their ms_per_step in
     * log.jsonl */
    double step_seconds;
    /* peak memory in bytes up to the end of the last step, as in log.jsonl; the final checkpoint is
     * not included */
    uint64_t step_peak_bytes;
    sgt_train_losses losses;
    /* peak_bytes: peak memory, including that for writing the last checkpoint; total_bytes: total
     * memory of the machine or, with CUDA, of the device */
    uint64_t peak_bytes, total_bytes;
} sgt_training_result;

/* Train a model. Every undecided setting in *s is set to the value that the run uses. Problems are
 * reported in this order: options (SGT_EUSAGE), device, run directory, data, model. If a checkpoint
 * cannot be saved, training continues, and sgt_train returns SGT_EIO after the last step. *r is
 * filled in on success, after such an SGT_EIO, and after SGT_ESTOPPED. */
int sgt_train(sgt_config *s, const sgt_train_options *o, sgt_training_result *r, sgt_error *err);
void sgt_training_result_free(sgt_training_result *r);

typedef struct sgt_train_estimate {
    sgt_model model;
    const char *device; /* "cpu" or "cuda" */
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    size_t count;
    /* total: sum of the bytes in `kinds`; available: bytes of free memory, UINT64_MAX if unknown */
    uint64_t total, available;
    /* bytes of host memory for a copy of the state, from which checkpoints are written in the
     * background; 0: there is no copy. On a CPU, this copy is also one of the entries in `kinds`.
     * With CUDA it is not, because `kinds` lists only device memory. */
    uint64_t checkpoint;
} sgt_train_estimate;

/* Estimate the memory of a run with these settings, without running any step and without opening
 * the data. The device is opened only if s->device is `auto`. On return, all settings in *s that
 * depend on the device are set. */
int sgt_train_estimate_memory(sgt_config *s, const sgt_train_options *o, sgt_train_estimate *e,
                              sgt_error *err);
/* Return the sum of those kinds of memory in the estimate that grow with the batch size:
 * activations, activation gradients, logits and data. */
uint64_t sgt_train_estimate_activations(const sgt_train_estimate *e);

#endif
