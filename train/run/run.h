/* run.h: a run directory: its checkpoints, its log, and the file that names the process that writes
 * to it.
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

/* Find the newest complete checkpoint of a run. *dir is malloc'd, or NULL if there is none.
 * Incomplete checkpoints are skipped with a notice. A notice is also given if `latest` names no
 * checkpoint. If `sums` is set, a checkpoint with wrong checksums counts as incomplete. It is not
 * an error if `run` does not exist. */
int sgt_run_newest(char **dir, const char *run, int sums, const sgt_notice *notice, sgt_error *err);

/* Find the checkpoint that a user means by `path`. If `path` is a run, it is the newest complete
 * checkpoint, as above. If it is RUN/latest or RUN/best, it is the checkpoint that this file names.
 * Any other path must exist and is used unchanged. *dir is malloc'd. */
int sgt_run_find(char **dir, const char *path, const sgt_notice *notice, sgt_error *err);
/* If `path` is the file RUN/latest or RUN/best, set `to` to the checkpoint that it names and return
 * 1. Return 0 for any other path. */
int sgt_run_named(char to[SGT_PATH], const char *path, sgt_error *err);

/* List the steps of the checkpoints of a run, complete or not, from the last to the first. The
 * caller frees *steps. It is not an error if `run` does not exist. */
int sgt_run_steps(uint64_t **steps, size_t *count, const char *run, sgt_error *err);

typedef struct sgt_run sgt_run;

/* Return the error rc. But if another process owns the run, replace the error by SGT_EUNSUPPORTED
 * with a message that says so. */
int sgt_run_owned(const char *run, int rc, sgt_error *err);

/* Open the run in who->folder for writing: create the folder if it is missing, and become its
 * owner. Remove the remains of an interrupted save, and all checkpoints after `step`. Open the log
 * and cut it to the complete lines of steps before `step`; report missing or damaged lines to
 * *warning. Returns SGT_EUNSUPPORTED if another process writes to the run. Unless `force` is set,
 * also returns it if there is a complete checkpoint after `step`, which another process has written
 * since the caller looked. */
int sgt_run_open(sgt_run **out, uint64_t step, int force, sgt_claimant *who,
                 const sgt_notice *warning, sgt_error *err);
void sgt_run_close(sgt_run *r);                            /* NULL is fine */
char *sgt_run_checkpoint(const sgt_run *r, uint64_t step); /* "RUN/step-NNNNNNNN", malloc'd */

/* Write or replace a file of the run, such as options.json. */
int sgt_run_put(const sgt_run *r, const char *name, const char *text, sgt_error *err);
/* Append an object to starts.jsonl: time (UTC), host, machine (processor or device), version, step,
 * and command (left out if NULL). The file is emptied first if `step` is 0 or if it is larger than
 * 1 MiB. */
int sgt_run_start(sgt_run *r, uint64_t step, const char *machine, const char *command,
                  sgt_error *err);
/* Append a line and a newline to the log. If it cannot be written now, for example because the disk
 * is full, the line is kept in memory and the next call writes it first. Until then, saves fail. */
int sgt_run_log(sgt_run *r, const char *line, sgt_error *err);
/* Return the last line of the log, malloc'd; NULL if the log is empty. */
char *sgt_run_last_line(const sgt_run *r);

/* Save RUN/step-NNNNNNNN for state->step. It is written to disk after the lines of the log, and
 * appears atomically. One thread may save while another one logs. Then point `latest` to it, and
 * also `best` if its validation loss is the lowest. Finally remove all checkpoints except the best
 * and the newest `keep` (0: keep all). */
int sgt_run_save(sgt_run *r, const sgt_checkpoint_state *state, sgt_backend *b, const sgt_model *m,
                 const char *tokenizer, int64_t eot, uint64_t keep, sgt_error *err);

/* Remove old checkpoints as sgt_run_save does at its end. Needed if the last save was interrupted
 * before that. */
int sgt_run_rotate(const sgt_run *r, uint64_t keep, sgt_error *err);

#endif
