/* ablation.h: the training techniques, switched on one after the other (ablation.c). Each is
 * measured together with all before it (ablation_measure.c) and shown in a table and a picture
 * (ablation_show.c). */
#ifndef SGT_TOOLS_BENCH_ABLATION_H
#define SGT_TOOLS_BENCH_ABLATION_H

#include <jansson.h>

#include "tools/bench/step.h"

/* rows per micro-step; larger batches are not searched */
#define ABLATION_MOST ((uint32_t)1 << 16)

#define ABLATION_ROUNDS 100

/* In the order in which they are switched on. */
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
    int wanted;      /* it is to be measured */
    char why[160];   /* why it is not measured */
    step_result r;   /* of the last round, but with the median times of all rounds */
    unsigned rounds; /* rounds in which it was measured */
    double ms[ABLATION_ROUNDS], wait_ms[ABLATION_ROUNDS];
    uint32_t largest;       /* the most rows per micro-step that fit, up to ABLATION_MOST */
    uint32_t in_time;       /* `largest`, or fewer if time is short */
    step_result at_largest; /* measured with in_time rows; ms is 0 if it was not measured */
} ablation_row;

typedef struct ablation {
    const char *device, *data;
    char *cache;     /* folder for kernel timings */
    sgt_model model; /* without the data's vocabulary */
    const char *model_name;
    uint32_t batch, seq;
    int threads, at_largest; /* at_largest: also measure with the largest batch */
    unsigned warmup, steps, rounds;
    /* limit of the bytes that the largest batch may hold; 0: what the device allows */
    uint64_t memory_limit;
    double seconds;  /* for all rows with their largest batch, in all */
    int interrupted; /* interrupted: show the rows measured so far */
    sgt_notice notice;
    const sgt_stop *stop;
    ablation_row rows[TECHNIQUES];
} ablation;

/* Decide which wanted rows this device and data support, and choose `batch` if it is 0. With
 * `named`, rows were asked for by name, and an unsupported one is an error. */
int ablation_settle(ablation *a, int named, sgt_error *err);
/* Measure the wanted rows. Returns SGT_ESTOPPED between two steps after `stop` is raised; rows that
 * no round measured are then no longer wanted. */
int ablation_measure(ablation *a, sgt_error *err);

/* Return whether any row was measured; otherwise there is nothing to show. */
int ablation_any(const ablation *a);
/* The functions that bench_subcommand wants; `bench` is an ablation. */
void ablation_show(void *bench);
json_t *ablation_json(void *bench);
int ablation_plot(void *bench, const char *path, sgt_error *err);

#endif
