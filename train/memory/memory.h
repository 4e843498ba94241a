/* memory.h: computes the memory of a run before it is allocated, and from that chooses the rows of
 * a micro-step (--batch-size auto) and what each layer recomputes (--recompute auto), so that the
 * run fits in --memory-limit or the free memory.
 *
 * Before these calls, sgt_trainer_settle and sgt_trainer_read_shape must have succeeded. Every rank
 * makes the calls. */
#ifndef SGT_MEMORY_H
#define SGT_MEMORY_H

#include "train/trainer.h"

/* Return whether a setting is to be chosen by the memory, or a memory limit must be checked. */
int sgt_memory_asked(const sgt_settings *s);

/* Decide s->batch and t->recompute_at for a run, and report each in a line. Reads only the headers
 * of the data. Returns SGT_ENOMEM, with how much memory is needed and the largest --batch-size that
 * fits. */
int sgt_memory_plan(sgt_trainer *t, sgt_error *err);

/* Decide the same for a trainer that will not run, and fill in *e: the memory that it would take,
 * by kind, and the memory available. */
int sgt_memory_estimate(sgt_trainer *t, sgt_train_estimate *e, sgt_error *err);

#endif
