/* watch.h: what is done with the numbers of a step that has ended: the log and TensorBoard's events
 * get them, and people hear what is worth hearing: an evaluation, an epoch's end, advice. The loop
 * measures; this tells. */
#ifndef SGT_WATCH_H
#define SGT_WATCH_H

#include "advice.h"
#include "log/events.h"
#include "trainer.h"

#define SGT_WATCH_RECENT 20 /* steps whose losses are averaged in what is said at the end */

typedef struct sgt_watch {
    const sgt_trainer *t;
    sgt_events *events; /* NULL: this rank writes none */
    double flops;       /* of a token */
    /* operations a second of a device: the most that was seen so far; 0: not known */
    double peak;
    /* epoch_loss: sum of losses since the last epoch's end, at epoch_start */
    double start, epoch_start, epoch_loss;
    double epoch_said; /* when an epoch's line was said last */
    uint64_t epoch_steps;
    sgt_diagnosis diagnosis; /* of all steps since the run began, those before a resume too */
    /* left out up to the last line, and how many of them without a step between */
    uint64_t spikes, row;
    double first_loss, last_loss;    /* of this call */
    double recent[SGT_WATCH_RECENT]; /* losses, step s in recent[s % SGT_WATCH_RECENT] */
    uint64_t steps;                  /* made in this call */
    /* the last evaluation's, and after how many steps of the run; 0: there was none */
    double val_loss;
    uint64_t val_step;
    uint64_t skipped; /* updates left out up to the last line */
} sgt_watch;

/* From t->state.step on. Close it, after a failure too. */
int sgt_watch_open(sgt_watch *w, const sgt_trainer *t, sgt_error *err);
void sgt_watch_close(sgt_watch *w);

/* The next step's numbers; mfu and mfu_datasheet are filled in here. */
int sgt_watch_step(sgt_watch *w, sgt_metrics *m, sgt_error *err);

/* Once a run is over: what came of --overfit-batch. */
void sgt_watch_end(const sgt_watch *w, uint64_t steps);

/* The losses of this call, for a summary. */
void sgt_watch_losses(const sgt_watch *w, sgt_train_losses *out);

#endif
