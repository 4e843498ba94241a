/* run.h: a run directory: its checkpoints, its log, and the lock of the process that writes to it.
 *
 *   RUN/step-NNNNNNNN/   checkpoints after N steps; a folder with this name is complete
 *   RUN/latest           names the newest checkpoint
 *   RUN/best             names the one with the lowest validation loss, if some were evaluated
 *   RUN/log.jsonl        an object for each step; a resume reads them all back
 *   RUN/memory.jsonl     memory in use by kind, in each part of a step (memory/memory.h)
 *   RUN/options.json     the options of the run
 *   RUN/starts.jsonl     an object per start: when, where and by which command
 *   RUN/owner            names the process that writes, while it does (owner.h) */
#ifndef SGT_RUN_H
#define SGT_RUN_H

#include <stdint.h>

#include "loader/base/file.h"
#include "loader/base/owner.h"
#include "train/run/checkpoint.h"

/* Find the newest complete checkpoint of a run. *dir is malloc'd, or NULL if there is none. An
 * incomplete checkpoint is skipped with a notice; a notice also tells if `latest` names no
 * checkpoint. With `sums`, a checkpoint with wrong checksums counts as incomplete. It is no error
 * if `run` does not exist. */
int sgt_run_newest(char **dir, const char *run, int sums, const sgt_notice *notice, sgt_error *err);

/* Find the checkpoint that a user means by `path`: a run stands for its newest complete one, as above;
 * RUN/latest and RUN/best stand for those they name; any other path stands for itself, and must
 * exist. *dir is malloc'd. */
int sgt_run_find(char **dir, const char *path, const sgt_notice *notice, sgt_error *err);
/* If `path` is the file RUN/latest or RUN/best, set `to` to the checkpoint that it names and return
 * 1. Return 0 for any other path. */
int sgt_run_named(char to[SGT_PATH], const char *path, sgt_error *err);

/* List the steps of the checkpoints of a run, complete or not, from the last to the first. The caller
 * frees *steps. It is no error if `run` does not exist. */
int sgt_run_steps(uint64_t **steps, size_t *count, const char *run, sgt_error *err);

typedef struct sgt_run sgt_run;

/* Return rc, an error; or if another process owns the run, SGT_EUNSUPPORTED, which says so. */
int sgt_run_owned(const char *run, int rc, sgt_error *err);

/* Open the run in who->folder for writing: create the folder if it is missing, and become its owner.
 * Remove the remains of an interrupted save, and all checkpoints after `step`. Open the log and cut
 * it to the whole lines of steps before `step`; report missing or damaged lines to *warning. Returns
 * SGT_EUNSUPPORTED if another process writes to the run; or, unless `force`, if there is a complete
 * checkpoint after `step`, which another process wrote since the caller looked. */
int sgt_run_open(sgt_run **out, uint64_t step, int force, sgt_claimant *who,
                 const sgt_notice *warning, sgt_error *err);
void sgt_run_close(sgt_run *r);                            /* NULL is fine */
char *sgt_run_checkpoint(const sgt_run *r, uint64_t step); /* "RUN/step-NNNNNNNN", malloc'd */

/* Write a file of the run, such as options.json, or replace it. */
int sgt_run_put(const sgt_run *r, const char *name, const char *text, sgt_error *err);
/* Append an object to starts.jsonl: time (UTC), host, machine (processor or device), version, step,
 * and command (left out if NULL). A start at step 0 empties the file first, and so does any start
 * if it has more than 1 MiB. */
int sgt_run_start(sgt_run *r, uint64_t step, const char *machine, const char *command,
                  sgt_error *err);
/* Append a line and a newline to the log. If it cannot be written now, as on a full disk, the line
 * waits in memory, the next call writes it first, and a save fails until then. */
int sgt_run_log(sgt_run *r, const char *line, sgt_error *err);
/* Return the last line of the log, malloc'd; NULL if the log is empty. */
char *sgt_run_last_line(const sgt_run *r);

/* Save RUN/step-NNNNNNNN for state->step. It appears atomically and is durable, once the log's
 * lines are. A thread may save while another logs. Then point `latest` to it, and `best` if its
 * validation loss is the lowest, and remove all but that and the newest `keep` checkpoints (0: keep
 * all). */
int sgt_run_save(sgt_run *r, const sgt_checkpoint_state *state, sgt_backend *b, const sgt_model *m,
                 const char *tokenizer, int64_t eot, uint64_t keep, sgt_error *err);

/* Remove old checkpoints like sgt_run_save does at its end, because the last save may have been
 * interrupted before that. */
int sgt_run_rotate(const sgt_run *r, uint64_t keep, sgt_error *err);

#endif
