/* progress.h: a progress bar in one line: " 42%|######## | 84.1/200 MB [00:03<00:04, 25.0 MB/s]
 * facts". On a terminal it is redrawn in place 5 times a second, at the terminal's current width.
 * Without a terminal, a line is printed every 10 s, and one at the end. If `quiet` is set, nothing
 * is printed. All output goes to stderr. Any thread may call sgt_progress_update and
 * sgt_progress_line, and use the notice.
 *
 * On a narrow terminal, the bar becomes shorter first. Then parts are left out, in this order: the
 * rate; the elapsed time (the remaining time stays); all facts except the first, from the last one
 * on; the bar; the first fact. On terminals of at least thirty columns, no part is cut in its
 * middle. No line is longer than the terminal is wide, because a redraw would not erase all of
 * it. */
#ifndef SGT_CLI_PROGRESS_H
#define SGT_CLI_PROGRESS_H

#include <stdint.h>

#include "loader/base/error.h"

typedef struct sgt_progress sgt_progress;

/* Create a progress bar. `unit` names the things that are counted, such as "step". The unit "B"
 * means bytes, which are shown in KiB, MiB or GiB. Returns NULL if memory runs out. All other
 * functions accept NULL. */
sgt_progress *sgt_progress_new(const char *unit, int quiet);
/* Show that `done` of `total` units are done; total 0: unknown. `facts` are texts to show behind
 * the bar, separated by tabs, the most important one first. `from` is the value of `done` when this
 * process began: work before a resume does not count in the rate. */
void sgt_progress_update(sgt_progress *p, uint64_t done, uint64_t total, uint64_t from,
                         const char *facts);
/* Print a line, such as the result of an evaluation, above the bar. Without a terminal, the line is
 * simply printed. */
void sgt_progress_line(sgt_progress *p, const char *line);
/* Return a notice that prints messages of a library as "PROGRAM: line" above the bar. It is valid
 * until sgt_progress_end; the string `program` must stay valid as long. */
sgt_notice sgt_progress_notice(sgt_progress *p, const char *program);
/* Let sgt_progress_end always print the last state. By default it does not if there is no terminal
 * and the run was so short (under 10 s) that no line was printed. */
void sgt_progress_keep_last(sgt_progress *p);
/* Draw the last state, end the line and free p. NULL is allowed. */
void sgt_progress_end(sgt_progress *p);

#endif
