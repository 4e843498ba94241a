/* memory.h: compute the memory of a run before allocating it, and choose by it: the rows of a
 * micro-step (--batch-size auto) and what each layer recomputes (--recompute auto), within
 * --memory-limit or the free memory.
 *
 * All calls take a trainer that is settled and whose shape has been read. Every rank makes them. */
#ifndef SGT_MEMORY_H
#define SGT_MEMORY_H

#include "train/trainer.h"

/* Return whether the settings leave a choice to memory, or set a limit that must be checked. */
int sgt_memory_asked(const sgt_settings *s);

/* Decide s->batch and t->recompute_at for a run, and report each in a line. Reads only the headers
 * of the data. SGT_ENOMEM says how much is needed, and the largest --batch-size that fits. */
int sgt_memory_plan(sgt_trainer *t, sgt_error *err);

/* Do the same for a trainer that will not run, and fill in *e: the memory it would take, by kind,
 * and the memory available. */
int sgt_memory_estimate(sgt_trainer *t, sgt_train_estimate *e, sgt_error *err);

#endif
