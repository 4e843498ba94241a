/* run.h: a run directory, which holds checkpoints, a log, and a file that names the process writing
 * to it.
 *
 *   RUN/step-NNNNNNNN/   checkpoint after N steps; a folder with such a name is complete
 *   RUN/latest           names the newest checkpoint
 *   RUN/best             names the checkpoint with the lowest validation loss, if there is one
 *   RUN/log.jsonl        one object per step; a resume reads all of them
 *   RUN/memory.jsonl     memory in use by kind, in each part of a step (memory/memory.h)
 *   RUN/options.json     the options of the run
 *   RUN/starts.jsonl     one object per start: time, host, machine, version, step and command
 *   RUN/owner            names the process that is writing to the run (owner.h) */
#ifndef SGT_RUN_H
#define SGT_RUN_H

#include <stdint.h>

#include "loader/base/file.h"
#include "loader/base/owner.h"
#include "train/run/checkpoint.h"

/* Set *dir to the malloc'd path of a run's newest complete checkpoint, or to NULL if it has none or
 * does not exist. Skip incomplete checkpoints, with a notice for each. Also give a notice if the
 * file `latest` does not name a checkpoint. If `sums` is set, a checkpoint with a wrong checksum
 * counts as incomplete. */
int sgt_run_newest(char **dir, const char *run, int sums, const sgt_notice *notice, sgt_error *err);

/* Set *dir to the malloc'd path of the checkpoint or model that `path` means. If `path` is a run,
 * *dir is its newest complete checkpoint (see sgt_run_newest). If `path` is RUN/latest or RUN/best,
 * *dir is the checkpoint that this file names. Any other path must exist and is copied
 * unchanged. */
int sgt_run_find(char **dir, const char *path, const sgt_notice *notice, sgt_error *err);
/* If `path` is the file RUN/latest or RUN/best, copy the path of the checkpoint that it names to
 * `to`, and return 1. Return 0 for any other path. */
int sgt_run_named(char to[SGT_PATH], const char *path, sgt_error *err);

/* List the steps of a run's checkpoints, complete or not, in descending order. The caller frees
 * *steps. If `run` does not exist, the list is empty. */
int sgt_run_steps(uint64_t **steps, size_t *count, const char *run, sgt_error *err);

typedef struct sgt_run sgt_run;

/* If another process is writing to the run, return SGT_EUNSUPPORTED with a message that says so.
 * Otherwise return rc, an error that the caller has found in the run's files. */
int sgt_run_owned(const char *run, int rc, sgt_error *err);

/* Open the run in who->folder for writing. Create the folder if it is missing, and become its
 * owner. Remove what an interrupted save has left, and all checkpoints after `step`. Open the log,
 * and cut it to the complete lines of steps before `step`. Lines that are missing or damaged are
 * reported to *warning.
 *
 * Return SGT_EUNSUPPORTED if another process writes to the run. Unless `force` is set, also return
 * it if there is a complete checkpoint after `step`, because another process must have written it
 * since the caller looked. */
int sgt_run_open(sgt_run **out, uint64_t step, int force, sgt_claimant *who,
                 const sgt_notice *warning, sgt_error *err);
void sgt_run_close(sgt_run *r);                            /* NULL is fine */
char *sgt_run_checkpoint(const sgt_run *r, uint64_t step); /* "RUN/step-NNNNNNNN", malloc'd */

/* Write a file in the run directory, such as options.json. An existing file is replaced. */
int sgt_run_put(const sgt_run *r, const char *name, const char *text, sgt_error *err);
/* Append an object to starts.jsonl: time (UTC), host, machine (processor or device), version, step,
 * and command (omitted if NULL). If `step` is 0, or if the file exceeds 1 MiB, its earlier objects
 * are discarded. */
int sgt_run_start(sgt_run *r, uint64_t step, const char *machine, const char *command,
                  sgt_error *err);
/* Append a line and a newline to the log. If writing fails, for example because the disk is full,
 * the line is kept in memory and written with the next line. While lines are waiting in memory,
 * saving a checkpoint fails, because its log lines must be on disk first. */
int sgt_run_log(sgt_run *r, const char *line, sgt_error *err);
/* Return the last line of the log, malloc'd, or NULL if the log is empty. */
char *sgt_run_last_line(const sgt_run *r);

/* Save the checkpoint RUN/step-NNNNNNNN of step state->step. It is written after the log lines of
 * its steps are on disk, and appears atomically. Then `latest` is set to it, and also `best` if its
 * validation loss is the lowest. Finally all checkpoints except the best one and the newest `keep`
 * are removed (0: none is removed). One thread may save while another thread writes to the log. */
int sgt_run_save(sgt_run *r, const sgt_checkpoint_state *state, sgt_backend *b, const sgt_model *m,
                 const char *tokenizer, int64_t eot, uint64_t keep, sgt_error *err);

/* Remove all checkpoints after step `last`. Of the other checkpoints, keep only the newest `keep`
 * (0: all) and the best. sgt_run_save does this at its end, unless it is interrupted before. */
int sgt_run_rotate(const sgt_run *r, uint64_t last, uint64_t keep, sgt_error *err);

#endif
