/* step.h: measures a training step as the training loop runs it, but without a run directory, on
 * rows of some source. step.c and ablation.c use it. */
#ifndef SGT_TOOLS_BENCH_STEP_H
#define SGT_TOOLS_BENCH_STEP_H

#include "loader/sgt_loader.h"
#include "train/backend.h"

/* ---- sources of rows ---- */

/* A source of rows: random tokens in memory, a loader as in training, or text that is encoded when
 * its row is asked for. One thread makes all calls of one source.
 *
 *     step_rows *rows;
 *     if (bench_rows_random(&rows, vocab, batch, seq, &err) < 0) ...;
 *     if (bench_rows_open(rows, backend, micro_steps, &err) == 0)
 *         while (...) bench_rows_next(rows, &tokens, &err);    // (batch, seq + 1)
 *     bench_rows_close(rows);                                  // before the backend is closed
 *     bench_rows_free(rows);                                   // accepts NULL */
typedef struct step_rows step_rows;

/* Cycle through eight batches of uniform tokens below `vocab`. */
int bench_rows_random(step_rows **out, uint32_t vocab, uint32_t batch, uint32_t seq,
                      sgt_error *err);

/* Take batches 0, 1, ... of the loader, which stays the caller's. A thread prepares them; if `now`
 * is set, each is made only when it is asked for. */
int bench_rows_loader(step_rows **out, const sgt_loader *l, int now, sgt_error *err);

/* Make the same rows from text. Opening decodes each of the loader's windows; asking for a row
 * encodes the text and cuts it to the row's length. Tokens at a row's beginning, and so those after
 * it, may differ from the loader's. SGT_EUNSUPPORTED: the loader's tokens are not GPT-2's. */
int bench_rows_text(step_rows **out, const sgt_loader *l, sgt_error *err);

/* Prepare rows for `count` micro-steps of this backend, as a run does before its first step. */
int bench_rows_open(step_rows *r, const sgt_backend *b, uint64_t count, sgt_error *err);
int bench_rows_next(step_rows *r, const uint16_t **tokens, sgt_error *err);
void bench_rows_close(step_rows *r);
void bench_rows_free(step_rows *r);

/* ---- a measured step ---- */

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

#endif
