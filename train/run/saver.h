/* saver.h: writes checkpoints in the background while training continues.
 *
 *     sgt_saver *s;
 *     if (sgt_saver_open(&s, trainer, &err) < 0) ...;
 *     for (step ...) {
 *         if (sgt_saver_check(s, &err) < 0) ...;          // a write has failed
 *         ...
 *         if (time to save) rc = sgt_saver_save(s, &state, backend, more steps follow, &err);
 *     }
 *     rc = sgt_saver_wait(s, &err);
 *     sgt_saver_close(s);
 *
 * A save copies parameters and moments to memory of the saver, which the first save allocates and
 * later saves reuse. A thread then writes the copy (sgt_run_save: temporary names, fsync, rename,
 * `latest`, rotation). Copying costs a pass over memory; fork would avoid that, but is unsafe with
 * threads of OpenMP, CUDA or MPI. Only one write runs at a time; the next save waits for it. If a
 * write fails, the older checkpoints remain, and a later save may succeed. If there is no memory
 * for the copy, or if no step follows the save, training waits for the write. Only one thread may
 * use a saver. */
#ifndef SGT_SAVER_H
#define SGT_SAVER_H

#include "train/trainer.h"

typedef struct sgt_saver sgt_saver;

/* Open a saver for t->run. Gives a notice to t->o->notice if there is no memory for the copy. */
int sgt_saver_open(sgt_saver **out, const sgt_trainer *t, sgt_error *err);
void sgt_saver_close(sgt_saver *s); /* wait for the write in progress, then free s; NULL is fine */

/* Return the size in bytes of a saver's copy of this model and its moments. */
uint64_t sgt_saver_bytes(const sgt_model *m, sgt_optim_kind optimizer);

/* Save a checkpoint. The texts in *state must stay valid until the write has ended. `more`: 1 if
 * steps follow, so that the checkpoint is written in the background. Returns the error of the
 * previous write, or of this write if it is not in the background. In the second case, it may have
 * read only a part of the backend's state. */
int sgt_saver_save(sgt_saver *s, const sgt_checkpoint_state *state, sgt_backend *b, int more,
                   sgt_error *err);

/* Return the error of the last write if it has failed. Each error is returned only once.
 * sgt_saver_check does not wait for the write; sgt_saver_wait does. */
int sgt_saver_check(sgt_saver *s, sgt_error *err);
int sgt_saver_wait(sgt_saver *s, sgt_error *err);

/* Return the step of the newest checkpoint whose write is known to have succeeded (after a wait or
 * a check); 0: none. */
uint64_t sgt_saver_saved(const sgt_saver *s);

#endif
