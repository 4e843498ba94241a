/* ablation.h: the training techniques, switched on one after the other (ablation.c). Each is
 * measured together with all before it (ablation_measure.c) and shown in a table (ablation_show.c). */
#ifndef SGT_TOOLS_BENCH_ABLATION_H
#define SGT_TOOLS_BENCH_ABLATION_H

#include <jansson.h>

#include "tools/bench/step.h"

/* most rows per micro-step that are tried in search of the largest batch */
#define ABLATION_MOST ((uint32_t)1 << 16)

#define ABLATION_ROUNDS 100

/* The techniques, in the order in which they are switched on. */
typedef enum technique {
    TECHNIQUE_TEXT,
    TECHNIQUE_COLD,
    TECHNIQUE_MMAP,
    TECHNIQUE_PRELOAD,
    TECHNIQUE_SIMD,
    TECHNIQUE_OVERLAP,
    TECHNIQUE_ASYNC,
    TECHNIQUE_TF32,
    TECHNIQUE_BF16,
    TECHNIQUE_FUSED,
    TECHNIQUE_GRAPHS,
    TECHNIQUE_FLASH,
    TECHNIQUE_PADDED,
    TECHNIQUE_TIED,
    TECHNIQUE_ACCUM,
    TECHNIQUE_RECOMPUTE,
    TECHNIQUES
} technique;

typedef struct technique_text {
    const char *name, *about;
    const char *not_on_cpu; /* why a CPU has no such row; NULL if it has one */
} technique_text;
extern const technique_text techniques[TECHNIQUES];

typedef struct ablation_row {
    int wanted;      /* 1: the row is to be measured */
    char why[160];   /* why the row is not measured; "" if it can be */
    step_result r;   /* results of the last round, but with the median times of all rounds */
    unsigned rounds; /* rounds in which the row was measured */
    double ms[ABLATION_ROUNDS], wait_ms[ABLATION_ROUNDS];
    uint32_t largest;       /* the most rows per micro-step that fit, up to ABLATION_MOST */
    uint32_t in_time;       /* rows measured: `largest`, or fewer if time is short */
    step_result at_largest; /* results with in_time rows; its ms is 0 if it was not measured */
} ablation_row;

typedef struct ablation {
    const char *device, *data;
    char *cache;     /* folder for timing results (backend.h) */
    sgt_model model; /* its vocabulary is that of the data */
    const char *model_name;
    uint32_t batch, seq;
    int threads, at_largest; /* at_largest: also measure with the largest batch */
    unsigned warmup, steps, rounds;
    /* limit of the bytes that the largest batch may hold; 0: what the device allows */
    uint64_t memory_limit;
    double seconds;  /* time limit in seconds for all measurements with the largest batch */
    int interrupted; /* 1: interrupted; show the rows measured so far */
    sgt_notice notice;
    const sgt_stop *stop;
    ablation_row rows[TECHNIQUES];
} ablation;

/* Decide which of the wanted rows this device and data support, and choose `batch` if it is 0. If
 * `named` is set, the user named the rows, and an unsupported one is an error. */
int ablation_settle(ablation *a, int named, sgt_error *err);
/* Measure the wanted rows. Once `stop` is raised, returns SGT_ESTOPPED after the current step; rows
 * that no round measured are then no longer wanted. */
int ablation_measure(ablation *a, sgt_error *err);

/* Return whether any row was measured; otherwise there is nothing to show. */
int ablation_any(const ablation *a);
/* Functions for bench_subcommand (subcommand.h); `bench` is an ablation. */
void ablation_show(void *bench);
json_t *ablation_json(void *bench);

#endif
