/* memory_log.h: writes RUN/memory.jsonl: the backend's memory in use, by kind, in each part of a
 * step (live.h). It has one object per part, for the first and the last micro-step of two steps.
 * The file is written at once, as a whole. */
#ifndef SGT_MEMORY_LOG_H
#define SGT_MEMORY_LOG_H

#include "train/trainer.h"

/* steps of a call that are skipped first, because they may differ from all later ones */
#define SGT_MEMORY_LOG_SKIPS 1
#define SGT_MEMORY_LOG_STEPS 2

/* Write the file, if this rank writes files and the call has made enough steps. `made`: steps of
 * the call so far; `last`: it makes no more. */
int sgt_memory_log(const sgt_trainer *t, uint64_t made, int last, sgt_error *err);

#endif
