/* plan.h: what a run does, in numbers and enumerations: resolved from its settings, its data, its
 * model and its device before the backend opens, and constant from there on. The loop and the
 * backends see the plan and no settings. */
#ifndef SGT_PLAN_H
#define SGT_PLAN_H

#include "backend.h"
#include "schedule.h"
#include "settings.h"

typedef struct sgt_plan {
    sgt_backend_options backend; /* what a step computes, on this rank's rows */
    sgt_schedule schedule;
    uint64_t batch;                        /* rows of a micro-step, over all ranks */
    uint64_t rows, tokens;                 /* of a step, over all ranks */
    uint64_t steps;                        /* of the whole run */
    uint64_t eval_every, save_every, keep; /* steps, steps, checkpoints; 0: never, never, all */
    uint32_t workers;                      /* threads that prepare batches */
    /* threads that copy a checkpoint's tensors: other ranks wait meanwhile */
    int save_threads;
    int no_overlap;   /* make each batch when a step needs it */
    int sync_metrics; /* wait for each step's metrics */
    int overfit;      /* train on the first step's rows alone */
} sgt_plan;

/* Set what the settings alone decide of a step: all but its model, its rows, what it reports to and
 * what it is timed by. SGT_EUSAGE names an option that is wrong. */
int sgt_resolve_step(sgt_backend_options *o, const sgt_settings *s, sgt_error *err);

#endif
