/* step.h: a training step measured by itself, without a run directory: steps over rows of some kind
 * (rows.h), as the training loop runs them. Used by step.c and ablation.c. */
#ifndef SGT_TOOLS_BENCH_STEP_H
#define SGT_TOOLS_BENCH_STEP_H

#include "backend.h"
#include "tools/bench/rows.h"

#define STEP_PARTS 16

typedef struct step_run {
    const char *device; /* "cpu" or "cuda" */
    const sgt_backend_options *backend;
    step_rows *rows;
    unsigned warmup, steps; /* steps before those that are measured, and those */
    int sync_metrics;       /* a step's metrics are waited for before the next one is queued */
    int parts;              /* where the time of a step goes is noted too */
    int count_kernels;      /* one step more, whose kernels CUPTI counts */
    const sgt_stop *stop;
} step_run;

typedef struct step_part {
    char name[48]; /* "forward": that of all layers */
    double ms;     /* of a step */
} step_part;

typedef struct step_result {
    char device[64], level[64], library[128]; /* as the backend names itself */
    unsigned steps;                           /* measured, after the warm-up */
    /* until the backend stood; until the first step's metrics came */
    double open_s, first_s;
    double ms, wait_ms;                 /* a step, and its waiting for rows: medians */
    double tokens_per_s, flops;         /* flops: of a second, forward and backward */
    double peak_flops, datasheet_flops; /* of the device, 0: not known */
    double loss;                        /* of the last step */
    uint64_t bytes;                     /* that the backend holds */
    /* of the process or on the device; of the machine or the device */
    uint64_t peak_bytes, total_bytes;
    unsigned launches_forward, launches_step; /* CUDA; 0: not counted */
    /* kernels of a step as CUPTI sees them; 0: there is no CUPTI */
    unsigned seen_step;
    step_part parts[STEP_PARTS];
    size_t part_count;
} step_result;

/* SGT_ESTOPPED between two steps once `stop` is raised. */
int bench_step_measure(step_result *r, const step_run *run, sgt_error *err);

/* Where the time of traced steps went, from a trace's file: the same part of all layers added
 * up. */
int bench_step_parts(step_result *r, const char *path, sgt_error *err);

#endif
