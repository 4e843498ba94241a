/* memory.h: computes how much memory a run will need. From this size it decides --batch-size auto
 * and --recompute auto, so that the run fits in --memory-limit or in the free memory. During a run
 * it writes RUN/memory.jsonl. sgt_train_estimate_memory, which reports an estimate to the user, is
 * declared in sgt_train.h. */
#ifndef SGT_MEMORY_H
#define SGT_MEMORY_H

#include "train/trainer.h"

/* Return whether sgt_memory_decide has work to do: whether --batch-size or --recompute is auto, or
 * there is a --memory-limit. */
int sgt_memory_asked(const sgt_config *s);

/* Decide t->s->batch and t->recompute_at, and give a notice of each decision. If nothing fits in
 * memory, return SGT_ENOMEM with a message that states how much memory is needed and which
 * --batch-size would fit. Only the headers of the data are read. Every rank must call this
 * function, after sgt_trainer_settle and sgt_trainer_read_shape. */
int sgt_memory_decide(sgt_trainer *t, sgt_error *err);

/* Return how many bytes of this machine's memory the run's data may use: the free memory, minus the
 * memory that the backends of all ranks on the machine will allocate later. Return UINT64_MAX if
 * unknown. A new model's vocabulary is not known before the data is opened, so GPT-2's size is
 * assumed. Call this after sgt_trainer_settle and sgt_trainer_read_shape. */
uint64_t sgt_memory_for_data(const sgt_trainer *t);

/* Return *why, the error of a CPU backend that ran out of memory. Add to its message the largest
 * --batch-size that fits, unless sgt_memory_decide has already checked that the run fits. */
int sgt_memory_explain(sgt_trainer *t, const sgt_error *why, sgt_error *err);

/* Write RUN/memory.jsonl, which states how much of the backend's memory is in use in each part of a
 * step (sgt_live), by kind of memory. Write it only if this rank writes the run directory, and when
 * this call to sgt_train has run enough steps.
 *
 * The file describes up to two steps. For each of them, it has one object for each part of the
 * first and of the last micro-step. `made`: number of steps that the call has run; `last`: 1 if the
 * call runs no more steps. */
int sgt_memory_log(const sgt_trainer *t, uint64_t made, int last, sgt_error *err);

#endif
