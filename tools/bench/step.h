/* step.h: measures a training step as the training loop runs it, but without a run directory, on
 * rows of some source. step.c and ablation.c use it. */
#ifndef SGT_TOOLS_BENCH_STEP_H
#define SGT_TOOLS_BENCH_STEP_H

#include <jansson.h>

#include "loader/sgt_loader.h"
#include "train/backend.h"

/* Where a step's rows come from. */
typedef enum step_source {
    STEP_RANDOM, /* eight batches of uniform tokens, in turn */
    STEP_LOADER, /* batches 0, 1, ... of a loader, which a thread prepares */
    STEP_NOW,    /* the same, each made only when it is asked for */
    /* The same rows from text, which is encoded when its batch is asked for, and cut to the batch's
     * size. Tokens where a row begins, and so those after them, may differ from the loader's. The
     * loader's tokens must be GPT-2's. */
    STEP_TEXT
} step_source;

typedef struct step_run {
    const char *device; /* "cpu" or "cuda" */
    const sgt_backend_options *backend;
    step_source source;
    const sgt_loader *loader; /* NULL: STEP_RANDOM */
    unsigned warmup, steps;   /* steps before the measured ones; measured steps */
    int sync_metrics;         /* wait for a step's metrics before queueing the next */
    int parts;                /* CUDA: also record where the time of a step goes */
    const sgt_stop *stop;
} step_run;

/* Measure the step. Set *figures to an object with the fields that `sgt-bench step --json` has of a
 * step, which are in its manual. Once `stop` is raised, returns SGT_ESTOPPED after the current
 * step. */
int bench_step_measure(json_t **figures, const step_run *run, sgt_error *err);

#endif
