/* step.h: measures a training step as the training loop runs it, but without a run directory.
 * step.c and ablation.c use it. */
#ifndef SGT_TOOLS_BENCH_STEP_H
#define SGT_TOOLS_BENCH_STEP_H

#include <jansson.h>

#include "loader/sgt_loader.h"
#include "train/backend.h"

/* Where a step's rows come from. */
typedef enum step_source {
    STEP_LOADER, /* batches 0, 1, ... of the data, which a thread prepares */
    STEP_NOW,    /* the same, each made only when it is asked for */
    STEP_TEXT    /* the same, and its text is encoded then too; the tokens must be GPT-2's */
} step_source;

typedef struct step_run {
    const char *device;                 /* "cpu" or "cuda" */
    const sgt_backend_options *backend; /* the vocabulary becomes that of the data */
    const char *data;                   /* shards; NULL: random tokens */
    sgt_reader reader;
    /* state of the shards in the page cache before the first step */
    enum { STEP_AS_IT_IS, STEP_COLD, STEP_CACHED } cache;
    step_source source;
    int plain_rows;         /* copy the tokens of rows one by one */
    unsigned warmup, steps; /* steps before the measured ones; measured steps */
    int sync_metrics;       /* wait for a step's metrics before queueing the next */
    int parts;              /* CUDA: also record where the time of a step goes */
    const sgt_stop *stop;
} step_run;

/* Measure the step. Set *figures to an object with the fields that `sgt-bench step --json` has of a
 * step, which are in its manual. Once `stop` is raised, returns SGT_ESTOPPED after the current
 * step. */
int bench_step_measure(json_t **figures, const step_run *run, sgt_error *err);

#endif
