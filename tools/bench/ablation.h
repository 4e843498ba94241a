/* ablation.h: the techniques of training one after the other (ablation.c), each measured with all
 * that came before it (ablation_measure.c), in a table and a picture (ablation_show.c). */
#ifndef SGT_TOOLS_BENCH_ABLATION_H
#define SGT_TOOLS_BENCH_ABLATION_H

#include <jansson.h>

#include "tools/bench/step.h"

/* rows of a micro-step: larger batches are not looked for */
#define ABLATION_MOST ((uint32_t)1 << 16)

#define ABLATION_ROUNDS 100

/* In the order in which they come on. */
typedef enum technique {
    TECHNIQUE_TEXT,
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
    TECHNIQUES
} technique;

typedef struct technique_text {
    const char *name, *about;
    const char *not_on_cpu; /* why a CPU has no such row; NULL: it has */
} technique_text;
extern const technique_text techniques[TECHNIQUES];

typedef struct ablation_row {
    int wanted;      /* is to be measured */
    char why[160];   /* it is not */
    step_result r;   /* of the last round; its times are the median of the rounds */
    unsigned rounds; /* that it was measured in */
    double ms[ABLATION_ROUNDS], wait_ms[ABLATION_ROUNDS];
    uint32_t largest;       /* the most rows of a micro-step that fit, up to ABLATION_MOST */
    uint32_t in_time;       /* those, or as many as there is time for */
    step_result at_largest; /* with in_time rows; ms 0: not measured */
} ablation_row;

typedef struct ablation {
    const char *device, *data;
    char *cache;     /* a folder for timings */
    sgt_model model; /* without the data's vocabulary */
    const char *model_name;
    uint32_t batch, seq;
    int threads, at_largest; /* the second: rows are measured with the largest batch too */
    unsigned warmup, steps, rounds;
    /* bytes that the model and its step may hold with the largest batch; 0: by the device */
    uint64_t memory_limit;
    double seconds;  /* for all rows with their largest batch together */
    int interrupted; /* what was measured by then is shown */
    sgt_notice notice;
    const sgt_stop *stop;
    ablation_row rows[TECHNIQUES];
} ablation;

/* Finds out which of the rows that are wanted this device and this data can have, and decides batch
 * where it is 0. `named`: the rows were asked for by name, and one that cannot be had fails. */
int ablation_settle(ablation *a, int named, sgt_error *err);
/* SGT_ESTOPPED between two steps once `stop` is raised: rows that were measured in no round are no
 * longer wanted. */
int ablation_measure(ablation *a, sgt_error *err);

/* Whether any row was measured; otherwise there is nothing to show. */
int ablation_any(const ablation *a);
/* Of an ablation, as bench_subcommand has them. */
void ablation_show(void *bench);
json_t *ablation_json(void *bench);
int ablation_plot(void *bench, const char *path, sgt_error *err);

#endif
