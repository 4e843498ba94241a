/* run.h: a run directory: its checkpoints, its log, and who may write to it.
 *
 *   RUN/step-NNNNNNNN/   checkpoints, N steps completed; a folder of that name is complete
 *   RUN/latest           names the newest
 *   RUN/log.jsonl        an object a step
 *   RUN/memory.jsonl     what of memory is in use when, by kind (memory_log.h)
 *   RUN/options.json     what made the run
 *   RUN/starts.jsonl     an object a start: when, where and by which command */
#ifndef SGT_RUN_H
#define SGT_RUN_H

#include <stdint.h>

#include "base/error.h"
#include "checkpoint.h"

/* The newest whole checkpoint of a run, into malloc'd *dir; NULL where there is none. One that is
 * not whole is passed over and said, and so is a `latest` that names none; with `sums`, bytes that
 * are not those that were written count as not whole. No folder at `run` is no error. */
int sgt_run_newest(char **dir, const char *run, int sums, const sgt_notice *notice, sgt_error *err);

typedef struct sgt_run sgt_run;

/* Takes the folder for writing (made if missing; SGT_EUNSUPPORTED while another process has it),
 * removes what an interrupted save left behind and checkpoints of steps after `step` (all of them
 * for 0), and opens the log, cut to the whole lines of steps below `step`; lines that are missing
 * or damaged are said. A whole checkpoint after `step` is SGT_EUNSUPPORTED unless `force`: another
 * process has made it since the caller looked. */
int sgt_run_open(sgt_run **out, const char *path, uint64_t step, int force,
                 const sgt_notice *notice, sgt_error *err);
void sgt_run_close(sgt_run *r);                            /* NULL is fine */
char *sgt_run_checkpoint(const sgt_run *r, uint64_t step); /* "RUN/step-NNNNNNNN", malloc'd */

int sgt_run_options(sgt_run *r, const char *json, sgt_error *err);
/* Appends an object to starts.jsonl, which a start at step 0 begins anew: time (UTC), host, machine
 * (what computes), version, step and command (NULL: left out). Of a file beyond a MiB nothing is
 * kept. */
int sgt_run_start(sgt_run *r, uint64_t step, const char *machine, const char *command,
                  sgt_error *err);
int sgt_run_memory(sgt_run *r, const char *lines, sgt_error *err); /* memory.jsonl's, all of them */
/* appends the line and a newline, in one write */
int sgt_run_log(sgt_run *r, const char *line, sgt_error *err);
/* of the log, malloc'd; NULL where it is empty */
char *sgt_run_last_line(const sgt_run *r);

/* Saves RUN/step-N for state->step, so that it appears at once and durable, points `latest` to it,
 * and removes all but the newest `keep` (0: none). The log's lines are durable before it. */
int sgt_run_save(sgt_run *r, const sgt_checkpoint_state *state, sgt_backend *b, const sgt_model *m,
                 const char *tokenizer, int64_t eot, uint64_t keep, sgt_error *err);

/* The last thing a save does, for one that was interrupted just before it. */
int sgt_run_rotate(const sgt_run *r, uint64_t keep, sgt_error *err);

#endif
