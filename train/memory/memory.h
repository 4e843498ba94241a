/* memory.h: computes how much memory a run will need. From this size it decides --batch-size auto
 * and --recompute auto, so that the run fits in --memory-limit or in the free memory. During a run
 * it writes RUN/memory.jsonl. sgt_train_estimate_memory, which reports an estimate to the user, is
 * declared in sgt_train.h. */
#ifndef SGT_MEMORY_H
#define SGT_MEMORY_H

#include "train/trainer.h"

/* Return whether free memory decides --batch-size or --recompute, or a memory limit must be
 * checked. */
int sgt_memory_asked(const sgt_config *s);

/* Decide t->s->batch and t->recompute_at, and give a notice of each decision. Only the headers of
 * the data are read. Every rank must call this function, after sgt_trainer_settle and
 * sgt_trainer_read_shape. If nothing fits in memory, return SGT_ENOMEM with a message that states
 * how much memory is needed and which --batch-size would fit. */
int sgt_memory_decide(sgt_trainer *t, sgt_error *err);

/* Return how many bytes of this machine's memory data may use: the free memory minus what the
 * backends of all ranks on the machine will allocate. Before the data is opened, the size of a new
 * model is computed with GPT-2's vocabulary. Return UINT64_MAX if unknown. Call it after
 * sgt_trainer_settle and sgt_trainer_read_shape. */
uint64_t sgt_memory_for_data(const sgt_trainer *t);

/* Return the error *why of a CPU backend that ran out of memory, with the largest --batch-size that
 * fits added to the message. Nothing is added if the memory of the run was checked before. */
int sgt_memory_explain(sgt_trainer *t, const sgt_error *why, sgt_error *err);

/* Write RUN/memory.jsonl if this rank writes to the run directory and this call of sgt_train has
 * run enough steps. The file states how much of the backend's memory is in use, by kind, in each
 * part of a step (sgt_live). Of two steps, it describes the first and the last micro-step, with one
 * object per part. `made`: number of steps that the call has run; `last`: 1 if the call runs no
 * more steps. */
int sgt_memory_log(const sgt_trainer *t, uint64_t made, int last, sgt_error *err);

#endif
