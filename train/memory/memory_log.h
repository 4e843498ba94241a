/* memory_log.h: RUN/memory.jsonl: what of the backend's memory is in use, by kind, as a step goes
 * through its parts (live.h): an object a part, of the first and the last micro-step of two steps.
 * Written whole, at once. */
#ifndef SGT_MEMORY_LOG_H
#define SGT_MEMORY_LOG_H

#include "trainer.h"

/* steps of a call before those that are written: they are like all that follow */
#define SGT_MEMORY_LOG_SKIPS 1
#define SGT_MEMORY_LOG_STEPS 2

/* For a call that has made `made` steps and, `last`, makes no more: when it is time to, and this
 * rank writes at all. */
int sgt_memory_log(const sgt_trainer *t, uint64_t made, int last, sgt_error *err);

#endif
