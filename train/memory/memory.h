/* memory.h: computes how much memory a run will need, and uses this number to choose the values of
 * --batch-size auto and --recompute auto that fit in --memory-limit or in the free memory. It also
 * writes RUN/memory.jsonl. sgt_train_estimate_memory, which reports an estimate to the user, is
 * declared in sgt_train.h. */
#ifndef SGT_MEMORY_H
#define SGT_MEMORY_H

#include "train/trainer.h"

/* Return 1 if sgt_memory_decide has work to do, because --batch-size or --recompute is auto or
 * --memory-limit is set; otherwise return 0. */
int sgt_memory_asked(const sgt_config *s);

/* Set t->s->batch if --batch-size is auto, and t->recompute_at if --recompute is auto. Give a
 * notice of each choice. If nothing fits in memory, return SGT_ENOMEM with a message that states
 * the required memory and a --batch-size that would fit. The function reads only the headers of the
 * data. Every rank must call it, after sgt_trainer_settle and sgt_trainer_read_shape. */
int sgt_memory_decide(sgt_trainer *t, sgt_error *err);

/* Return how many bytes of this machine's memory the training data may use: the free memory, minus
 * the memory that the backends of all ranks on this machine will allocate later. Return UINT64_MAX
 * if unknown. Before the data of a new model is opened, assume a vocabulary of GPT-2's size. Call
 * this function after sgt_trainer_settle and sgt_trainer_read_shape. */
uint64_t sgt_memory_for_data(const sgt_trainer *t);

/* Return the error *why, with which a CPU backend ran out of memory, and copy it to *err. Add the
 * largest --batch-size that fits to the message, unless sgt_memory_decide has already checked that
 * the run fits. */
int sgt_memory_explain(sgt_trainer *t, const sgt_error *why, sgt_error *err);

/* Write RUN/memory.jsonl, which states how much of the backend's memory of each kind is in use
 * during each part of a step, such as the forward pass of one layer (see sgt_live). Do nothing
 * unless this rank writes the run directory and this call to sgt_train has run 3 steps, or has
 * ended after 2.
 *
 * The file describes up to two steps. For each step, it has one JSON object for each part of the
 * first micro-step and of the last micro-step. `made`: number of steps that this call to sgt_train
 * has run; `last`: 1 if this was the last step of the call; otherwise 0. */
int sgt_memory_log(const sgt_trainer *t, uint64_t made, int last, sgt_error *err);

#endif
