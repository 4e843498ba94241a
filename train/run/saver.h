/* saver.h: checkpoints that are written while training goes on.
 *
 *     sgt_saver *s;
 *     if (sgt_saver_open(&s, &options, &err) < 0) ...;
 *     for (step ...) {
 *         if (sgt_saver_check(s, &err) < 0) ...;                     // a write that failed ends the run here
 *         ...
 *         if (time to save) rc = sgt_saver_save(s, &state, backend, more steps follow, &err);
 *     }
 *     rc = sgt_saver_wait(s, &err);
 *     sgt_saver_close(s);
 *
 * A save copies parameters and moments into memory of the saver's own, which is taken at the first
 * one and kept, and a thread writes them out (sgt_run_save: temporary names, fsync, rename,
 * `latest`, rotation). Copying costs a pass over memory; forking, which would save the copy, is not
 * for a process with OpenMP's, CUDA's or MPI's threads. One write is under way at a time: the next
 * save waits for it. Where memory for the copy is not to be had, and for a save after which no step
 * remains, training waits for the write. All calls come from one thread. */
#ifndef SGT_SAVER_H
#define SGT_SAVER_H

#include "run.h"
#include "log/trace.h"

typedef struct sgt_saver sgt_saver;

typedef struct sgt_saver_options {
    sgt_run *run;
    const sgt_model *model;
    sgt_optim_kind optimizer;
    const char *tokenizer; /* tokenizer.json's text, or NULL */
    int64_t eot;           /* -1: not known */
    uint64_t keep;
    int threads; /* that are there while a save copies, at least 1 */
    sgt_trace *trace;
    sgt_notice notice; /* where memory for the copy is not to be had */
} sgt_saver_options;

/* What options point to must live until close. */
int sgt_saver_open(sgt_saver **out, const sgt_saver_options *o, sgt_error *err);
void sgt_saver_close(sgt_saver *s); /* waits for the write under way; NULL is fine */

/* Bytes that such a saver's copy takes. */
uint64_t sgt_saver_bytes(const sgt_model *m, sgt_optim_kind optimizer);

/* state's texts must live until the write is over. more: whether steps follow. An error is this
 * save's, or that of the one before. */
int sgt_saver_save(sgt_saver *s, const sgt_checkpoint_state *state, sgt_backend *b, int more,
                   sgt_error *err);

/* Says of a write that failed, once, why: check as soon as it has, wait after waiting for its
 * end. */
int sgt_saver_check(sgt_saver *s, sgt_error *err);
int sgt_saver_wait(sgt_saver *s, sgt_error *err);

/* The step of the newest checkpoint that was written by this saver and waited for; 0: none. */
uint64_t sgt_saver_saved(const sgt_saver *s);

#endif
