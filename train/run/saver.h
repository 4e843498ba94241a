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
 * later ones reuse. A thread then writes them (sgt_run_save: temporary names, fsync, rename,
 * `latest`, rotation). Copying costs a pass over memory; fork would avoid the copy but is unsafe
 * with threads of OpenMP, CUDA or MPI. Only one write runs at a time; the next save waits for it.
 * A write that fails leaves the older checkpoints, and a later save may work. If there is no memory
 * for the copy, or no step remains after the save, training waits for the write. All calls come
 * from one thread. */
#ifndef SGT_SAVER_H
#define SGT_SAVER_H

#include "train/trainer.h"

typedef struct sgt_saver sgt_saver;

/* Open a saver for t->run. If there is no memory for the copy, it tells t->o->notice. */
int sgt_saver_open(sgt_saver **out, const sgt_trainer *t, sgt_error *err);
void sgt_saver_close(sgt_saver *s); /* wait for the write in progress, then free s; NULL is fine */

/* Return the bytes of a saver's copy of this model. */
uint64_t sgt_saver_bytes(const sgt_model *m, sgt_optim_kind optimizer);

/* Save a checkpoint. The texts in *state must live until the write has ended. `more`: steps follow,
 * so write in the background. Returns the error of the previous write, or of this one if no
 * thread writes it; the write may then have read a part of the backend's state. */
int sgt_saver_save(sgt_saver *s, const sgt_checkpoint_state *state, sgt_backend *b, int more,
                   sgt_error *err);

/* Return the error of a failed write, once. sgt_saver_check does not wait for the write;
 * sgt_saver_wait does. */
int sgt_saver_check(sgt_saver *s, sgt_error *err);
int sgt_saver_wait(sgt_saver *s, sgt_error *err);

/* Return the step of the newest checkpoint whose write was waited for; 0: none. */
uint64_t sgt_saver_saved(const sgt_saver *s);

#endif
