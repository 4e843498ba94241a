/* sgt_train.h: trains GPT-2 on shards: what sgt-train does.
 *
 *     sgt_settings s;
 *     sgt_train_result r;
 *     sgt_settings_default(&s);
 *     s.data = "out";
 *     s.model = "4x256x4";
 *     sgt_train_options o = {.run = "run"};
 *     if (sgt_train(&s, &o, &r, &err) < 0) fprintf(stderr, "%s\n", err.text);
 *     sgt_train_result_free(&r);
 *     sgt_settings_free(&s);
 *
 * The run directory is run.h's; checkpoints are checkpoint.h's. While it runs, no signal handler
 * may run on the calling thread or on one that was made since: oneDNN's products have no stack for
 * it (see sgt_catch_signals). */
#ifndef SGT_TRAIN_H
#define SGT_TRAIN_H

#include "backend.h"
#include "base/error.h"
#include "base/ranks.h"
#include "data/examples.h"
#include "log/metrics.h"
#include "settings.h"

typedef struct sgt_train_options {
    const char *run;   /* the run directory */
    int resume, force; /* go on from its newest checkpoint; start over although it has one */
    /* with resume: start at step 0 if there is no checkpoint, which is an error without it */
    int or_start;
    /* save and return SGT_EUNSUPPORTED once the loss has diverged (see advice.h) */
    int stop_diverged;
    sgt_notice notice;
    /* what only some want to know: the device's speed, what decided a default */
    sgt_notice detail;
    /* what is wrong and yet no failure: to be said where talk is not wanted too */
    sgt_notice warning;
    const char *command; /* the command line, for starts.jsonl; NULL: not said there */
    /* where a trace of some steps goes (trace.h says which); NULL: none is made */
    const char *profile;
    /* Reads prompts and completions, which --data names as FILE.jsonl: fills in all but `rows` and
     * `order` of *e, malloc'd, which sgt_train frees, after a failure too. NULL: such data is
     * refused. */
    int (*examples)(const char *path, sgt_examples *e, sgt_error *err);
    /* a folder for what a device's timing found, made if it is missing; NULL: nowhere */
    const char *cache;
    /* in the place of the one that is found: tests put themselves there */
    const struct sgt_cuda_library *cuda;
    /* in the place of sgt_gemm_bf16 (kernels.h): likewise; NULL: that */
    int (*bf16)(sgt_error *err);
    /* The program that the self-check of CUDA's paths starts (paths.h); NULL: there is no
     * self-check. */
    const char *checker;
    /* finish the step, save, return SGT_ESTOPPED; with ranks, return at once */
    const sgt_stop *stop;
    /* The other processes of this run, each of which makes the same call with the same settings;
     * NULL: none. The run directory is the first one's to write, and it alone is to be given
     * notices to say; all read the same files. */
    sgt_ranks *ranks;
    /* After every step, and each line that a person may want to keep (an evaluation, an epoch).
     * NULL is fine. */
    void (*progress)(void *ctx, const sgt_metrics *m, uint64_t steps, uint64_t first);
    void (*line)(void *ctx, const char *line);
    void *ctx;
} sgt_train_options;

/* Of one set of a mix, since the run's beginning. */
typedef struct sgt_train_set {
    char *data;    /* its path, malloc'd */
    uint64_t rows; /* trained on, and how many times all of the set's that is */
    double epochs;
} sgt_train_set;

/* Of the steps of one call. */
typedef struct sgt_train_losses {
    uint64_t resumed, steps; /* the step it went on from; how many it made */
    double first, mean;      /* the first step's loss; the mean of the last `of` steps */
    uint64_t of;             /* 20, or half of the steps if that is fewer */
    /* the last evaluation's, after `val_step` steps of the run; 0: there was none */
    double val;
    uint64_t val_step;
} sgt_train_losses;

typedef struct sgt_train_result {
    char *last;       /* the log's last line, malloc'd; NULL: no step was made */
    char *checkpoint; /* the newest one's folder, malloc'd; NULL where there is none */
    uint64_t steps;   /* completed, resumed ones included */
    uint64_t train_tokens, val_tokens; /* seen */
    /* begun in the training tokens; UINT64_MAX where the data does not say what begins one */
    uint64_t documents;
    sgt_train_set *sets; /* (set_count), where --data names several; else NULL */
    uint32_t set_count;
    double pf_days; /* that training on them took, by 6 N D (metrics.h) */
    double seconds; /* of this call, with evaluations and checkpoints */
    /* in this call's steps alone: the sum of their ms_per_step in log.jsonl */
    double step_seconds;
    uint64_t step_peak_bytes; /* most memory up to the last step's end, as log.jsonl has it */
    sgt_train_losses losses;
    /* most memory, with the last checkpoint; what the machine or device has */
    uint64_t peak_bytes, total_bytes;
} sgt_train_result;

/* s comes back with every default decided. Checks come in this order: options (SGT_EUSAGE), device,
 * run, data, model. On SGT_ESTOPPED the result is filled in too. */
int sgt_train(sgt_settings *s, const sgt_train_options *o, sgt_train_result *r, sgt_error *err);
void sgt_train_result_free(sgt_train_result *r);

typedef struct sgt_train_estimate {
    sgt_model model;
    const char *device; /* "cpu" or "cuda" */
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    size_t count;
    /* bytes: of all kinds; that are to be had now, UINT64_MAX where nothing says */
    uint64_t total, available;
    uint64_t
        checkpoint; /* bytes of the copy that is written while steps follow, 0: none; in the host's memory, so that
                            it is one of a CPU's kinds and beside those of CUDA's */
} sgt_train_estimate;

/* What the steps of such a run would hold, without running any. It needs no data, and for a device
 * that is named no such device. s comes back with what depends on the device decided. */
int sgt_train_estimate_memory(sgt_settings *s, const sgt_train_options *o, sgt_train_estimate *e,
                              sgt_error *err);

#endif
