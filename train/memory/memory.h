/* memory.h: what a run takes of memory, and what is chosen by that before any of it is taken: the
 * rows of a micro-step (--batch-size auto) and what each layer computes again (--recompute auto),
 * within --memory-limit or what there is.
 *
 * All calls take a trainer that is settled and whose shape is read; every rank makes them. */
#ifndef SGT_MEMORY_H
#define SGT_MEMORY_H

#include "trainer.h"

/* Whether the settings leave anything to be chosen by memory, or set a limit to be held against. */
int sgt_memory_asked(const sgt_settings *s);

/* For a run: on a copy of t, of the data no more than headers is read; s->batch and t->recompute_at
 * are decided, which is said in a line each. SGT_ENOMEM says what is needed and the largest
 * --batch-size that fits. */
int sgt_memory_plan(sgt_trainer *t, sgt_error *err);

/* The same for a trainer that is to run nothing, and what it would take then, by kind, beside what
 * there is. */
int sgt_memory_estimate(sgt_trainer *t, sgt_train_estimate *e, sgt_error *err);

#endif
