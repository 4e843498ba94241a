/* schedule.h: learning-rate schedules. */
#ifndef SGT_SCHEDULE_H
#define SGT_SCHEDULE_H

#include <stdint.h>

typedef enum sgt_schedule_kind {
    SGT_COSINE,
    SGT_LINEAR,
    SGT_CONSTANT,
    SGT_WSD,
    SGT_SCHEDULES
} sgt_schedule_kind;

typedef struct sgt_schedule {
    sgt_schedule_kind kind;
    double lr, min_lr;
    uint64_t warmup, steps; /* the warm-up may be longer than the run */
} sgt_schedule;

extern const char *const sgt_schedule_words[]; /* "cosine", "linear", "constant", "wsd"; NULL */

/* Return the learning rate at step s (from 0) of S = c->steps. It is lr*(s+1)/warmup while s <
 * warmup; then, by kind:
 *   cosine, linear: from lr at s = warmup to min_lr at s = S
 *   constant: lr
 *   wsd: lr, and over the last fifth of the run linearly to min_lr ("warm-up, stable, decay") */
double sgt_schedule_lr(const sgt_schedule *c, uint64_t s);

#endif
