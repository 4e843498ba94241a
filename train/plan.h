/* plan.h: the plan of a run, made from its settings, data, model and device before the backend
 * opens, and constant afterwards. The loop and the backends use the plan, not the settings. */
#ifndef SGT_PLAN_H
#define SGT_PLAN_H

#include "train/backend.h"
#include "train/schedule.h"
#include "train/settings.h"

typedef struct sgt_plan {
    sgt_backend_options backend; /* options of the backend, for this rank's rows */
    sgt_schedule schedule;
    uint64_t batch;        /* rows of a micro-step, over all ranks */
    uint64_t rows, tokens; /* rows and tokens of a step, over all ranks */
    uint64_t steps;        /* steps of the whole run */
    /* eval_every: steps, 0: never; save_every: steps, 0: never; keep: checkpoints, 0: all */
    uint64_t eval_every, save_every, keep;
    uint32_t workers; /* threads that prepare batches ahead */
    /* threads that copy a checkpoint's tensors, while other ranks wait */
    int save_threads;
    int no_overlap;   /* 1: make each batch only when a step needs it */
    int sync_metrics; /* 1: wait for each step's metrics */
    int overfit;      /* 1: train only on the rows of the first step */
} sgt_plan;

/* Set every option of the backend that the settings alone determine. Left out are the model, the
 * rows, the outputs, and what timing decides. Returns SGT_EUSAGE, with its name, if an option is
 * wrong. */
int sgt_resolve_step(sgt_backend_options *o, const sgt_settings *s, sgt_error *err);

#endif
