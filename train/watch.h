/* watch.h: report the numbers of finished steps: to the log, to TensorBoard, and to the user
 * (evaluations, ends of epochs, advice). loop.c measures them. */
#ifndef SGT_WATCH_H
#define SGT_WATCH_H

#include "train/advice.h"
#include "train/log/events.h"
#include "train/trainer.h"

#define SGT_WATCH_RECENT 20 /* steps whose losses are averaged in the summary */

typedef struct sgt_watch {
    const sgt_trainer *t;
    sgt_events *events; /* NULL: this rank writes none */
    double flops;       /* operations per token */
    /* highest operations per second of a device seen so far; 0: unknown */
    double peak;
    /* times of the call's start and of the last epoch's end; sum of losses since the latter */
    double start, epoch_start, epoch_loss;
    double epoch_said; /* time of the last line about an epoch */
    uint64_t epoch_steps;
    sgt_diagnosis diagnosis; /* of all steps of the run, including those before a resume */
    /* spikes skipped up to the last line; number of the newest steps in a row that were spikes */
    uint64_t spikes, row;
    double first_loss, last_loss;    /* losses of this call */
    double recent[SGT_WATCH_RECENT]; /* loss of step s in recent[s % SGT_WATCH_RECENT] */
    uint64_t steps;                  /* steps of this call */
    /* loss of the last evaluation, and the run's steps before it; 0: there was none */
    double val_loss;
    uint64_t val_step;
    uint64_t skipped; /* updates skipped up to the last line */
} sgt_watch;

/* Start reporting at t->state.step. The caller must call sgt_watch_close, even after a failure. */
int sgt_watch_open(sgt_watch *w, const sgt_trainer *t, sgt_error *err);
void sgt_watch_close(sgt_watch *w);

/* Report the next step; fills in m->mfu and m->mfu_datasheet. */
int sgt_watch_step(sgt_watch *w, sgt_metrics *m, sgt_error *err);

/* Report the result of --overfit-batch at the end of a run. */
void sgt_watch_end(const sgt_watch *w, uint64_t steps);

/* Write the losses of this call for a summary. */
void sgt_watch_losses(const sgt_watch *w, sgt_train_losses *out);

#endif
