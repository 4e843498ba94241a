/* step.h: a training step measured by itself: random tokens, no run directory. Used by step.c, and by whoever compares
 * steps. */
#ifndef SGT_TOOLS_BENCH_STEP_H
#define SGT_TOOLS_BENCH_STEP_H

#include "backend.h"

typedef struct step_result {
    char device[64], level[64], library[128]; /* as the backend names itself */
    unsigned steps;                           /* measured, after the warm-up */
    double open_s, first_s;                   /* until the backend stood; until the first step's metrics came */
    double ms;                                /* a step: the median */
    double tokens_per_s, flops;               /* flops: of a second, forward and backward */
    double peak_flops, datasheet_flops;       /* of the device, 0: not known */
    double loss;                              /* of the last step */
    uint64_t bytes;                           /* that the backend holds */
    unsigned launches_forward, launches_step; /* CUDA; 0: not counted */
    unsigned seen_step;                       /* kernels of a step as CUPTI sees them; 0: there is no CUPTI */
} step_result;

/* device "cpu", "cuda" or "auto". Runs `warmup` steps and then `steps`; stops early where `stop` is raised. */
int bench_step_measure(step_result *r, const char *device, const sgt_backend_options *o, unsigned warmup,
                       unsigned steps, const sgt_stop *stop, sgt_error *err);

#endif
