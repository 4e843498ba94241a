/* sgt_train.h: a library that trains GPT-2 on shards (files of token ids). The program sgt-train
 * uses it.
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
 * See run.h for the run directory, and checkpoint.h for the files of a checkpoint. */
#ifndef SGT_TRAIN_H
#define SGT_TRAIN_H

#include "train/backend.h"
#include "loader/base/error.h"
#include "loader/base/ranks.h"
#include "train/data/feed.h"
#include "train/log/metrics.h"
#include "train/config.h"

typedef struct sgt_train_options {
    /* run directory; NULL: write no files and print no notices (used to measure the speed of
     * steps) */
    const char *run;
    /* resume: 1 to start from the newest checkpoint of the run; force: 1 to overwrite an existing
     * run */
    int resume, force;
    /* what to do if there is no checkpoint to resume from: 1: start at step 0; 0: return an
     * error */
    int or_start;
    /* what to do if the loss diverges (see advice.h): 1: save a checkpoint and return
     * SGT_EUNSUPPORTED; 0: continue */
    int stop_diverged;
    sgt_notice notice;
    /* callback for detailed messages, such as the speed of the device or the reason for a
     * default */
    sgt_notice detail;
    /* callback for warnings: problems that do not end the run. A program should print warnings even
     * if the user has turned notices off. */
    sgt_notice warning;
    const char *command; /* command line to record in starts.jsonl; NULL: none is recorded */
    /* path of a file to which a trace of a few steps is written (see trace.h); NULL: no trace */
    const char *profile;
    /* Callback that reads prompts and completions from `path`, called if --data names a FILE.jsonl.
     * It tokenizes them with the vocabulary in the folder `model`, which has `vocab` ids; if
     * `model` is NULL, it uses GPT-2's vocabulary. It fills in all fields of *e except `rows` and
     * `order`. It allocates arrays with malloc; sgt_train frees them, even if the callback fails.
     * If the callback is NULL, a FILE.jsonl is an error. */
    int (*examples)(const char *path, const char *model, uint32_t vocab, sgt_examples *e,
                    sgt_error *err);
    /* Callback that compares two vocabularies: that of the data, and that in the folder `path`. If
     * the callback is NULL, vocabularies are not compared, and validation losses are not reported
     * in bits per byte. Return value of the callback:
     * - 1 if each id stands for the same token in both vocabularies
     * - 1 if they cannot be compared, because `path` has no vocabulary or `fingerprint` is 0
     * - 0 if they differ
     * - a negative SGT_E* if one of them is unknown or cannot be read
     *
     * The data's vocabulary has n ids and the fingerprint `fingerprint`. `tokenizer` is the path of
     * a file with this vocabulary, or NULL if there is none. If `path` is NULL, the vocabulary to
     * compare with is found by `fingerprint` or by n. If `bytes` is not NULL and the callback
     * returns 1, it sets bytes[0..n-1] to the length in bytes of each id's text, or to 0 for an id
     * without text, such as the end of text. */
    int (*vocabulary)(const char *path, const char *tokenizer, uint64_t fingerprint,
                      uint32_t *bytes, uint32_t n, sgt_error *err);
    /* cache folder, created if missing; it stores the measured peak speed of the CPU and the
     * verdicts of the self-check; NULL: nothing is stored */
    const char *cache;
    /* path of the program that the self-check of the CUDA backend starts as a child process (see
     * paths.h); NULL: no self-check */
    const char *checker;
    /* Request to stop. When it is raised in any rank, all ranks finish the same step, save a
     * checkpoint, and return SGT_ESTOPPED. */
    const sgt_stop *stop;
    /* The ranks (processes) that train together; NULL: this process trains alone. All ranks must
     * call sgt_train with the same settings and read the same files. Only rank 0 writes to the run
     * directory, and only rank 0 should set notice, detail and warning. */
    sgt_ranks *ranks;
    int most_threads; /* maximum number of CPU threads by default; 0: no limit */
    /* bytes of memory that the program uses in addition to training, for estimates of the total
     * memory; 0: use the current resident memory of the process */
    uint64_t program;
    /* Three callbacks; each may be NULL. `opened`: called before the first step with the backend,
     * which stays open until sgt_train returns. `progress`: called after each step. `line`: called
     * with each line that the user may want to keep, such as the results of an evaluation or of an
     * epoch. */
    void (*opened)(void *ctx, const sgt_backend *b);
    void (*progress)(void *ctx, const sgt_metrics *m, uint64_t steps, uint64_t first);
    void (*line)(void *ctx, const char *line);
    void *ctx;
} sgt_train_options;

/* How much of one data set was used for training, in a run that mixes several data sets. The
 * numbers include steps before a resume. */
typedef struct sgt_train_set {
    char *data; /* path, malloc'd */
    /* rows: number of rows from this set that were trained on; epochs: number of passes over this
     * set, that is, `rows` divided by the number of rows in the set */
    uint64_t rows;
    double epochs;
} sgt_train_set;

/* Losses of the steps of one call. */
typedef struct sgt_train_losses {
    /* resumed: number of steps that the run had completed before this call; steps: number of steps
     * in this call */
    uint64_t resumed, steps;
    /* first: loss of the first step in this call; mean: mean loss of the last `of` steps */
    double first, mean;
    /* number of steps over which `mean` is computed: 20, or half of this call's steps if that is
     * less */
    uint64_t of;
    /* validation loss at the latest evaluation; 0: no evaluation so far */
    double val;
    double val_bits_per_byte; /* `val` converted to bits per byte of text; 0: unknown */
    uint64_t val_step;        /* number of steps completed before `val` was measured */
} sgt_train_losses;

typedef struct sgt_training_result {
    char *last;       /* last line of log.jsonl, from malloc; NULL: the log is empty */
    char *checkpoint; /* path of the newest checkpoint, from malloc; NULL: none */
    uint64_t steps;   /* steps completed since the run began, including steps before a resume */
    uint64_t train_tokens, val_tokens; /* tokens seen */
    /* number of documents that begin in the rows trained on; UINT64_MAX: unknown, because the data
     * does not mark the beginnings of documents */
    uint64_t documents;
    sgt_train_set *sets; /* array with set_count elements; NULL if there is one set */
    uint32_t set_count;
    /* number of operations for training this model on train_tokens tokens, in petaflop/s-days (see
     * sgt_pf_days) */
    double pf_days;
    double seconds; /* duration of this call in seconds, with evaluations and checkpoints */
    /* sum of the durations of this call's steps, in seconds, without evaluations and checkpoints */
    double step_seconds;
    /* peak memory in bytes up to the end of the last step, as in log.jsonl; does not include the
     * memory for saving the last checkpoint */
    uint64_t step_peak_bytes;
    sgt_train_losses losses;
    /* peak_bytes: peak memory in bytes, including the memory for saving the last checkpoint;
     * total_bytes: total memory of the machine or, with CUDA, of the GPU */
    uint64_t peak_bytes, total_bytes;
} sgt_training_result;

/* Train a model. On return, settings in *s that were undecided have the values that the run uses.
 * Errors are found in this order: options (SGT_EUSAGE), device, run directory, data, model. If a
 * checkpoint other than the last one cannot be saved, training continues, and sgt_train returns
 * SGT_EIO after the last step. *r is filled in on success, in the case of this SGT_EIO, and after
 * SGT_ESTOPPED. */
int sgt_train(sgt_config *s, const sgt_train_options *o, sgt_training_result *r, sgt_error *err);
void sgt_training_result_free(sgt_training_result *r);

typedef struct sgt_train_estimate {
    sgt_model model;
    const char *device; /* "cpu" or "cuda" */
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    size_t count;
    /* total: sum of the bytes in `kinds`; available: free memory in bytes, UINT64_MAX if unknown */
    uint64_t total, available;
    /* bytes of host memory for a copy of the training state, so that checkpoints can be written in
     * the background; 0: no copy is made. On a CPU, this copy is also included in `kinds`. With
     * CUDA, it is not included, because `kinds` describes only the GPU's memory. */
    uint64_t checkpoint;
} sgt_train_estimate;

/* Estimate the memory that a run with these settings would use. No step is run and the data is not
 * opened; the device is opened only if s->device is `auto`. On return, all settings in *s that
 * depend on the device are decided. */
int sgt_train_estimate_memory(sgt_config *s, const sgt_train_options *o, sgt_train_estimate *e,
                              sgt_error *err);
/* Return the number of bytes in the estimate that grow with the batch size: activations, gradients
 * of activations, logits and data. */
uint64_t sgt_train_estimate_activations(const sgt_train_estimate *e);

#endif
