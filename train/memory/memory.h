/* memory.h: computes the memory of a run before it is allocated, and from that chooses the rows of
 * a micro-step (--batch-size auto) and what each layer recomputes (--recompute auto), so that the
 * run fits in --memory-limit or the free memory. While a run goes on, it writes RUN/memory.jsonl.
 * sgt_train.h has the estimate. */
#ifndef SGT_MEMORY_H
#define SGT_MEMORY_H

#include "train/trainer.h"

/* Return whether a setting is to be chosen by the memory, or a memory limit must be checked. */
int sgt_memory_asked(const sgt_config *s);

/* Decide t->s->batch and t->recompute_at, and report each in a line. Reads only the headers of the
 * data. Every rank makes the call, after sgt_trainer_settle and sgt_trainer_read_shape. Returns
 * SGT_ENOMEM, with how much memory is needed and the largest --batch-size that fits. */
int sgt_memory_decide(sgt_trainer *t, sgt_error *err);

/* Return the bytes of this machine's memory that are free for data, beside the model and its step of
 * all ranks, as far as these are known before the data: with GPT-2's vocabulary, if there is no
 * checkpoint. UINT64_MAX: unknown. Call it after sgt_trainer_settle and sgt_trainer_read_shape. */
uint64_t sgt_memory_for_data(const sgt_trainer *t);

/* Fail as a CPU backend did for want of memory (`why`), and name the largest --batch-size that fits,
 * unless the memory of the run was checked before. */
int sgt_memory_explain(sgt_trainer *t, const sgt_error *why, sgt_error *err);

/* Write RUN/memory.jsonl, if this rank writes files and the call has made enough steps: the
 * backend's memory in use, by kind, in each part of a step (sgt_live). It has one object per part, for
 * the first and the last micro-step of two steps. The file is written at once, as a whole. `made`:
 * steps of the call so far; `last`: it makes no more. */
int sgt_memory_log(const sgt_trainer *t, uint64_t made, int last, sgt_error *err);

#endif
