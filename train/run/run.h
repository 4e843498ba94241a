/* run.h: reads and writes a run directory, which contains the checkpoints and the log of a training
 * run.
 *
 *   RUN/step-NNNNNNNN/   checkpoint after N steps; gets this name only when it is complete
 *   RUN/latest           names the newest checkpoint
 *   RUN/best             names the checkpoint with the lowest validation loss, if there is one
 *   RUN/log.jsonl        one JSON object per step; resuming the run reads all lines
 *   RUN/memory.jsonl     memory of each kind in use during each part of a step (memory/memory.h)
 *   RUN/options.json     the options of the run
 *   RUN/starts.jsonl     one JSON object per start: time, host, machine, version, step and command
 *   RUN/owner            names the process that is writing to the run (owner.h) */
#ifndef SGT_RUN_H
#define SGT_RUN_H

#include <stdint.h>

#include "loader/base/file.h"
#include "loader/base/owner.h"
#include "train/run/checkpoint.h"

/* Set *dir to the malloc'd path of the newest complete checkpoint of the run directory `run`. Set
 * *dir to NULL if there is no such checkpoint, or if `run` does not exist. Give a notice for each
 * incomplete checkpoint that is skipped, and if the file `latest` does not name a checkpoint. If
 * `sums` is set, a checkpoint with a wrong checksum counts as incomplete. */
int sgt_run_newest(char **dir, const char *run, int sums, const sgt_notice *notice, sgt_error *err);

/* Set *dir to the malloc'd path of the checkpoint or model to which `path` refers. If `path` is a
 * run directory, *dir is its newest complete checkpoint (see sgt_run_newest). If `path` is
 * RUN/latest or RUN/best, *dir is the checkpoint that this file names. Any other `path` must exist,
 * and *dir is a copy of it. */
int sgt_run_find(char **dir, const char *path, const sgt_notice *notice, sgt_error *err);
/* If `path` is RUN/latest or RUN/best, write the path of the checkpoint that this file names to
 * `to`, and return 1. For any other path, return 0. On error, return a negative SGT_E*. */
int sgt_run_named(char to[SGT_PATH], const char *path, sgt_error *err);

/* Set *steps to the steps of all checkpoints of a run, complete or not, in descending order, and
 * *count to their number. The caller frees *steps. If `run` does not exist, *count is 0. */
int sgt_run_steps(uint64_t **steps, size_t *count, const char *run, sgt_error *err);

typedef struct sgt_run sgt_run;

/* Call this function with an error `rc` found in the files of the run directory `run`. If another
 * process is writing to the run, which may be the reason, return SGT_EUNSUPPORTED with a message
 * that says so. Otherwise return rc. */
int sgt_run_owned(const char *run, int rc, sgt_error *err);

/* Open the run directory who->folder for writing. Create the folder if it is missing, and become
 * its owner. Remove the temporary files of interrupted saves, and all checkpoints of steps after
 * `step`. Open the log, and remove all lines except the complete lines of steps before `step`. If
 * lines are missing or damaged, give the notice *warning.
 *
 * Return SGT_EUNSUPPORTED if another process is writing to the run. Unless `force` is set, also
 * return SGT_EUNSUPPORTED if there is a complete checkpoint of a later step: another process must
 * have saved this checkpoint after the caller chose `step`. */
int sgt_run_open(sgt_run **out, uint64_t step, int force, sgt_claimant *who,
                 const sgt_notice *warning, sgt_error *err);
void sgt_run_close(sgt_run *r);                            /* NULL is fine */
char *sgt_run_checkpoint(const sgt_run *r, uint64_t step); /* "RUN/step-NNNNNNNN", malloc'd */

/* Write the string `text` to the file `name` in the run directory, for example to options.json.
 * Replace the file if it exists. */
int sgt_run_put(const sgt_run *r, const char *name, const char *text, sgt_error *err);
/* Append an object to starts.jsonl, with time (UTC), host, machine (processor or device), version,
 * step and, unless NULL, command. If `step` is 0, or if the file has more than 1 MiB, first discard
 * its earlier objects. */
int sgt_run_start(sgt_run *r, uint64_t step, const char *machine, const char *command,
                  sgt_error *err);
/* Append a line and a newline to the log. If writing fails, for example because the disk is full,
 * keep the line in memory and write it with the next line. While lines are kept in memory,
 * checkpoints cannot be saved, because a checkpoint's log lines must be on disk before the
 * checkpoint. */
int sgt_run_log(sgt_run *r, const char *line, sgt_error *err);
/* Return a malloc'd copy of the last line of the log, or NULL if the log is empty. */
char *sgt_run_last_line(const sgt_run *r);

/* Save the state as the checkpoint RUN/step-NNNNNNNN of step state->step. First make sure that the
 * log lines of its steps are on disk. Then write the checkpoint, which appears atomically. Then
 * update `latest` and, if this checkpoint has the lowest validation loss, `best`. Finally remove
 * all checkpoints except the best one and the newest `keep` (0: remove none). One thread may save
 * while another thread writes to the log. */
int sgt_run_save(sgt_run *r, const sgt_checkpoint_state *state, sgt_backend *b, const sgt_model *m,
                 const char *tokenizer, int64_t eot, uint64_t keep, sgt_error *err);

/* Remove the checkpoints of all steps after `last`. Of the remaining checkpoints, keep only the
 * best one and the newest `keep` (0: keep all). sgt_run_save does this last, so an interrupted save
 * may not have done it. */
int sgt_run_rotate(const sgt_run *r, uint64_t last, uint64_t keep, sgt_error *err);

#endif
