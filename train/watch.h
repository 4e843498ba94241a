/* watch.h: reports the numbers of finished steps, which loop.c measures: to the log, to
 * TensorBoard, and to the user (evaluations, ends of epochs, advice). */
#ifndef SGT_WATCH_H
#define SGT_WATCH_H

#include "train/advice.h"
#include "train/log/metrics.h"
#include "train/trainer.h"

#define SGT_WATCH_RECENT 20 /* steps whose losses are averaged in the summary */

typedef struct sgt_watch {
    const sgt_trainer *t;
    sgt_events *events; /* TensorBoard's file; NULL if this rank writes none */
    double flops;       /* floating-point operations per token */
    /* highest rate of operations per second per device seen so far; 0: unknown */
    double peak;
    /* start: when this call began; epoch_start: when the last epoch ended; epoch_loss: sum of the
     * losses since then */
    double start, epoch_start, epoch_loss;
    double epoch_said; /* time of the last line about an epoch */
    uint64_t epoch_steps;
    /* diagnosis of all steps of the run, including those before a resume */
    sgt_diagnosis diagnosis;
    /* spikes: updates skipped as spikes so far; row: how many of the newest updates in a row were
     * spikes */
    uint64_t spikes, row;
    double first_loss, last_loss;    /* losses of the first and of the last step of this call */
    double recent[SGT_WATCH_RECENT]; /* loss of step s in recent[s % SGT_WATCH_RECENT] */
    uint64_t steps;                  /* steps of this call */
    /* loss of the last evaluation, and how many steps the run had made then; 0: none */
    double val_loss;
    double val_bits_per_byte; /* the same in bits per byte of text; 0: unknown */
    uint64_t val_step;
    uint64_t skipped; /* updates skipped so far */
} sgt_watch;

/* Start reporting at t->state.step. The caller must call sgt_watch_close, even after a failure. */
int sgt_watch_open(sgt_watch *w, const sgt_trainer *t, sgt_error *err);
void sgt_watch_close(sgt_watch *w);

/* Report the next step. Fills in m->mfu and m->mfu_datasheet. */
int sgt_watch_step(sgt_watch *w, sgt_metrics *m, sgt_error *err);

/* Report the result of --overfit-batch at the end of a run. */
void sgt_watch_end(const sgt_watch *w, uint64_t steps);

/* Write the losses of this call to *out, for a summary. */
void sgt_watch_losses(const sgt_watch *w, sgt_train_losses *out);

#endif
