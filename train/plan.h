/* plan.h: what a run does, resolved from its settings, data, model and device before the backend
 * opens, and constant afterwards. The loop and the backends see the plan, not the settings. */
#ifndef SGT_PLAN_H
#define SGT_PLAN_H

#include "train/backend.h"
#include "train/schedule.h"
#include "train/settings.h"

typedef struct sgt_plan {
    sgt_backend_options backend; /* options of the backend, for this rank's rows */
    sgt_schedule schedule;
    uint64_t batch;                        /* rows of a micro-step, over all ranks */
    uint64_t rows, tokens;                 /* rows and tokens of a step, over all ranks */
    uint64_t steps;                        /* steps of the whole run */
    uint64_t eval_every, save_every, keep; /* steps, steps, checkpoints; 0: never, never, all */
    uint32_t workers;                      /* threads that prepare batches ahead */
    /* threads that copy a checkpoint's tensors, while other ranks wait */
    int save_threads;
    int no_overlap;   /* make each batch when a step needs it */
    int sync_metrics; /* wait for each step's metrics */
    int overfit;      /* train on the first step's rows alone */
} sgt_plan;

/* Set everything that the settings alone decide about a step; not the model, the rows, the outputs
 * or what timing decides. SGT_EUSAGE names an option that is wrong. */
int sgt_resolve_step(sgt_backend_options *o, const sgt_settings *s, sgt_error *err);

#endif
