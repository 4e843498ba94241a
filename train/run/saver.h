/* saver.h: writes checkpoints in the background while training continues.
 *
 *     sgt_saver *s;
 *     if (sgt_saver_open(&s, trainer, &err) < 0) return rc;
 *     for (uint64_t step = 0; step < steps && rc >= 0; step++) {
 *         rc = sgt_saver_check(s, &err);       // < 0: an earlier write has failed
 *         ...                                  // run the step
 *         if (is_time_to_save)                 // more: 1 if further steps follow
 *             rc = sgt_saver_save(s, &state, backend, more, &err);
 *     }
 *     rc = sgt_saver_wait(s, &err);
 *     sgt_saver_close(s);
 *
 * A save copies parameters and moments to memory that the first save allocates and later saves
 * reuse. A background thread then writes the copy as sgt_run_save does: temporary names, fsync,
 * rename, `latest`, removal of old checkpoints. Copying costs a pass over memory. A fork would
 * avoid the copy, but is unsafe in a process with OpenMP, CUDA or MPI threads. Only one write runs
 * at a time, so the next save waits until the write has ended. If a write fails, the older
 * checkpoints remain, and a later save may succeed. If there is no memory for the copy, or if no
 * step follows the save, training waits for the write. Only one thread may use a saver. */
#ifndef SGT_SAVER_H
#define SGT_SAVER_H

#include "train/trainer.h"

typedef struct sgt_saver sgt_saver;

/* Open a saver for t->run. If a later save finds no memory for the copy, it gives a notice to
 * t->o->notice. */
int sgt_saver_open(sgt_saver **out, const sgt_trainer *t, sgt_error *err);
/* Wait for the write in progress, then free s. NULL is allowed. */
void sgt_saver_close(sgt_saver *s);

/* Return the size in bytes of the copy that a saver makes of a model's parameters and moments. */
uint64_t sgt_saver_bytes(const sgt_model *m, sgt_optim_kind optimizer);

/* Save a checkpoint. `more`: 1 if training continues. In this case, the checkpoint is written in
 * the background if there is memory for a copy of the state. The strings in *state must stay valid
 * until the checkpoint is written.
 *
 * If the previous write in the background failed, save nothing and return its error. Otherwise
 * return the error of this save, or 0 while it is written in the background; a later call then
 * returns the error of writing it. If this function fails, training on several ranks must end,
 * because other ranks may be waiting for calls to the backend that this rank has not made. */
int sgt_saver_save(sgt_saver *s, const sgt_checkpoint_state *state, sgt_backend *b, int more,
                   sgt_error *err);

/* If the previous write failed, return its error, but only once; otherwise return 0. sgt_saver_wait
 * first waits until the write has ended. sgt_saver_check does not wait. */
int sgt_saver_check(sgt_saver *s, sgt_error *err);
int sgt_saver_wait(sgt_saver *s, sgt_error *err);

/* Return the step of the newest checkpoint that sgt_saver_check or sgt_saver_wait has found to be
 * written; 0: none. */
uint64_t sgt_saver_saved(const sgt_saver *s);

#endif
