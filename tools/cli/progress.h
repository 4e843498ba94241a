/* progress.h: a progress bar in one line: " 42%|######## | 84.1/200 MB [00:03<00:04, 25.0 MB/s]
 * facts". On a terminal it is redrawn in place 5 times a second, at the terminal's current width.
 * Elsewhere a line is printed every 10 s, and one at the end. With `quiet`, nothing is printed. All
 * output goes to stderr. Any thread may call update, line and the notice.
 *
 * On a narrow terminal, the bar becomes shorter first. Then whole parts are left out, the least
 * important first: the rate, the elapsed time (the remaining time stays), the facts from the last
 * one on, and before the first fact the bar. With at least thirty columns, no part is cut in the
 * middle. No line is longer than the terminal, because a redraw would not erase all of it. */
#ifndef SGT_CLI_PROGRESS_H
#define SGT_CLI_PROGRESS_H

#include <stdint.h>

#include "loader/base/error.h"

typedef struct sgt_progress sgt_progress;

/* Create a bar. `unit` is what is counted, such as "step"; "B" is bytes, which are shown as KiB, MiB,
 * GiB. Returns NULL if memory runs out; all other functions accept NULL. */
sgt_progress *sgt_progress_new(const char *unit, int quiet);
/* Show `done` of `total` (0: unknown). `facts` are shown after the bar: texts separated by tabs,
 * the most important first. from: value of `done` when this run began, so that work before a resume
 * does not count as speed. */
void sgt_progress_update(sgt_progress *p, uint64_t done, uint64_t total, uint64_t from,
                         const char *facts);
/* Print a whole line, such as an evaluation's, above the bar; without a terminal, just print it. */
void sgt_progress_line(sgt_progress *p, const char *line);
/* Return a notice that prints a library's messages as "PROGRAM: line" above the bar. It is valid
 * until sgt_progress_end; the string `program` must live as long. */
sgt_notice sgt_progress_notice(sgt_progress *p, const char *program);
/* At the end, print the last state even if there is no terminal, the run took less than 10 s and no
 * line was printed before. */
void sgt_progress_keep_last(sgt_progress *p);
/* Draw the last state, end the line and free p, which may be NULL. */
void sgt_progress_end(sgt_progress *p);

#endif
