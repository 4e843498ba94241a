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
 * reuse. A background thread then calls sgt_run_save to write the copy as a checkpoint. fork()
 * would make the copy unnecessary, but is unsafe in a process with OpenMP, CUDA or MPI threads.
 * Only one checkpoint is written at a time, so a save first waits until the previous checkpoint has
 * been written. If writing fails, the older checkpoints remain, and a later save may succeed. If
 * there is no memory for the copy, or if the save follows the last step, training waits until the
 * checkpoint has been written. Only one thread at a time may use a saver. */
#ifndef SGT_SAVER_H
#define SGT_SAVER_H

#include "train/trainer.h"

typedef struct sgt_saver sgt_saver;

/* Open a saver for t->run. A save first copies the state to memory. The first time that there is no
 * memory for this copy, the saver calls t->o->notice. */
int sgt_saver_open(sgt_saver **out, const sgt_trainer *t, sgt_error *err);
/* Wait until the background thread has ended, then free s. `s` may be NULL. */
void sgt_saver_close(sgt_saver *s);

/* Return the size in bytes of the copy that a saver makes of the parameters and moments of model
 * m. */
uint64_t sgt_saver_bytes(const sgt_model *m, sgt_optim_kind optimizer);

/* Save a checkpoint. `more`: 1 if training continues after it, otherwise 0. If `more` is 1 and
 * there is memory for a copy of the state, the checkpoint is written in the background. The strings
 * in *state must stay valid until the checkpoint has been written.
 *
 * If writing the previous checkpoint in the background failed, save nothing and return that error.
 * Otherwise return 0 or the error of this save; if the checkpoint is written in the background, a
 * later call returns the error of writing it. If this function fails, training on several ranks
 * must end, because the other ranks may be waiting for backend calls that this rank has not
 * made. */
int sgt_saver_save(sgt_saver *s, const sgt_checkpoint_state *state, sgt_backend *b, int more,
                   sgt_error *err);

/* Return the error of the last write in the background, if it failed and the error has not been
 * returned yet; otherwise return 0. sgt_saver_wait first waits until the write has ended.
 * sgt_saver_check returns 0 if the write has not ended. */
int sgt_saver_check(sgt_saver *s, sgt_error *err);
int sgt_saver_wait(sgt_saver *s, sgt_error *err);

/* Return the step of the newest checkpoint that is known to have been written, or 0 if there is
 * none. After a write in the background, sgt_saver_check or sgt_saver_wait must have been
 * called. */
uint64_t sgt_saver_saved(const sgt_saver *s);

#endif
