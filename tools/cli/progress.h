/* progress.h: prints a progress bar on stderr, in one line such as " 42%|######## | 84.1/200 MB
 * [00:03<00:04, 25.0 MB/s] facts". On a terminal, the line is redrawn in place 5 times a second, at
 * the terminal's current width. If stderr is not a terminal, a line is printed every 10 s, and one
 * at the end. sgt_progress_update, sgt_progress_line and the notice of a progress bar can be used
 * by several threads at the same time.
 *
 * On a narrow terminal, the bar becomes shorter first. If the line is still too long, its elements
 * are omitted in this order: the rate; the elapsed time (but not the remaining time); all facts
 * except the first, starting with the last; the bar; the first fact. On terminals of at least
 * thirty columns, no element is cut off in the middle. A line is never longer than the terminal is
 * wide, because redrawing would not erase a line that wraps. */
#ifndef SGT_CLI_PROGRESS_H
#define SGT_CLI_PROGRESS_H

#include <stdint.h>

#include "loader/base/error.h"

typedef struct sgt_progress sgt_progress;

/* Create a progress bar. unit: the unit of work that is counted, such as "step", or "B" for bytes,
 * which are shown in KiB, MiB or GiB. If `quiet` is 1, nothing is printed. Return NULL if memory
 * runs out. All other functions accept NULL as p. */
sgt_progress *sgt_progress_new(const char *unit, int quiet);
/* Show that `done` of `total` units of work are done. total: 0 if the total is unknown. from:
 * number of units that were done before this process started, which do not count in the rate.
 * facts: short texts to show to the right of the bar, separated by tabs, the most important first;
 * NULL to keep the current texts. */
void sgt_progress_update(sgt_progress *p, uint64_t done, uint64_t total, uint64_t from,
                         const char *facts);
/* Print a line, such as the result of an evaluation, above the bar. If stderr is not a terminal,
 * only print the line. */
void sgt_progress_line(sgt_progress *p, const char *line);
/* Return a notice (a callback for messages of a library) that prints each message above the bar as
 * "PROGRAM: MESSAGE". The notice can be used until sgt_progress_end is called. Until then, the
 * string `program` must stay valid. */
sgt_notice sgt_progress_notice(sgt_progress *p, const char *program);
/* Make sgt_progress_end print the last state even if stderr is not a terminal and no line has been
 * printed yet, as in a run of less than 10 s. By default, nothing is printed in that case. */
void sgt_progress_keep_last(sgt_progress *p);
/* Draw the last state, end the line, and free p. */
void sgt_progress_end(sgt_progress *p);

#endif
