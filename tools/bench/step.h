/* step.h: measures a training step as the training loop runs it, but without a run directory, on
 * rows of some source (rows.h). step.c and ablation.c use it. */
#ifndef SGT_TOOLS_BENCH_STEP_H
#define SGT_TOOLS_BENCH_STEP_H

#include "kernels/cuda/cupti.h"
#include "train/backend.h"
#include "tools/bench/rows.h"

#define STEP_PARTS 128

typedef struct step_run {
    const char *device; /* "cpu" or "cuda" */
    const sgt_backend_options *backend;
    step_rows *rows;
    unsigned warmup, steps; /* steps before the measured ones; measured steps */
    int sync_metrics;       /* wait for a step's metrics before queueing the next */
    int parts;              /* also record where the time of a step goes */
    const sgt_stop *stop;
} step_run;

/* On a CPU a part of a step, on CUDA the kernels of one name. */
typedef struct step_part {
    char name[64]; /* "blocks forward", the sum over all layers; "norm_rows_kernel"; "qkv dX" */
    double ms;     /* per step */
    /* of kernels, per step; bytes and operations are 0 if they are unknown */
    double launches, bytes, flops;
} step_part;

typedef struct step_result {
    char device[64], level[64], library[128]; /* names that the backend reports */
    unsigned steps;                           /* measured steps, after the warm-up */
    /* open_s: seconds until the backend is open; first_s: until the first step's metrics arrive */
    double open_s, first_s;
    double ms, wait_ms; /* medians, per step: milliseconds in all; of these waiting for rows */
    /* flops: floating-point operations per second, forward and backward */
    double tokens_per_s, flops;
    double peak_flops, datasheet_flops; /* peak speeds of the device; 0: unknown */
    double loss;                        /* loss of the last step */
    uint64_t bytes;                     /* memory that the backend holds */
    /* peak memory of the process or on the device; memory of the machine or the device */
    uint64_t peak_bytes, total_bytes;
    unsigned launches_forward, launches_step; /* kernel launches with CUDA; 0: not counted */
    /* kernels of a step, counted by CUPTI; 0: no CUPTI */
    unsigned seen_step;
    step_part parts[STEP_PARTS]; /* kernels: the longest first */
    size_t part_count;
    /* With kernels, milliseconds of a step while CUPTI records; and of these without any kernel,
     * copy or fill on any stream. */
    double parts_ms, idle_ms;
} step_result;

/* Measure the step. Once `stop` is raised, returns SGT_ESTOPPED after the current step. */
int bench_step_measure(step_result *r, const step_run *run, sgt_error *err);

/* Fill in r->parts from a trace file of steps on a CPU; the times of all layers are summed. */
int bench_step_parts(step_result *r, const char *path, sgt_error *err);

/* What CUPTI recorded of some steps: give bench_step_span and this, zeroed, to sgt_cupti_end. Then
 * bench_step_kernels fills in r->parts, parts_ms and idle_ms, and frees it. */
typedef struct step_spans {
    step_result *r;
    struct step_interval {
        uint64_t start, end; /* nanoseconds */
    } * of;
    size_t count, room;
    int lost; /* 1: memory or room for names ran out */
} step_spans;
void bench_step_span(void *spans, const sgt_cupti_span *s);
int bench_step_kernels(step_spans *x, unsigned steps, sgt_error *err);

#endif
