/* memory.h: computes how much memory a run will need. From that it chooses the rows of a micro-step
 * (--batch-size auto) and what each layer recomputes (--recompute auto), so that the run fits in
 * --memory-limit or the free memory. During a run it writes RUN/memory.jsonl. The function that
 * estimates memory for users is in sgt_train.h. */
#ifndef SGT_MEMORY_H
#define SGT_MEMORY_H

#include "train/trainer.h"

/* Return whether memory decides a setting, or a memory limit must be checked. */
int sgt_memory_asked(const sgt_config *s);

/* Decide t->s->batch and t->recompute_at, and report each decision in a notice. Reads only the
 * headers of the data. Every rank makes the call, after sgt_trainer_settle and
 * sgt_trainer_read_shape. If nothing fits, returns SGT_ENOMEM; the message states how much memory
 * is needed and the largest --batch-size that fits. */
int sgt_memory_decide(sgt_trainer *t, sgt_error *err);

/* Return how many bytes of this machine's memory are free for data: the free memory minus the
 * memory that the backends of all ranks will take. Before the data is opened, that memory is
 * computed with GPT-2's vocabulary if there is no checkpoint. UINT64_MAX: unknown. Call it after
 * sgt_trainer_settle and sgt_trainer_read_shape. */
uint64_t sgt_memory_for_data(const sgt_trainer *t);

/* Fail with `why`, the error of a CPU backend that ran out of memory. The message adds the largest
 * --batch-size that fits, unless the memory of the run was checked before. */
int sgt_memory_explain(sgt_trainer *t, const sgt_error *why, sgt_error *err);

/* Write RUN/memory.jsonl if this rank writes files and this call of sgt_train has run enough steps.
 * The file states the backend's memory in use, by kind, in each part of a step (sgt_live). It has
 * one object for each part of the first and the last micro-step of two steps. `made`: number of
 * steps that the call has run; `last`: 1 if it runs no more. */
int sgt_memory_log(const sgt_trainer *t, uint64_t made, int last, sgt_error *err);

#endif
