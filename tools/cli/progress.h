/* progress.h: a progress bar in one line: " 42%|######## | 84.1/200 MB [00:03<00:04, 25.0 MB/s]
 * facts". On a terminal, the line is redrawn in place 5 times a second, at the terminal's current
 * width. Without a terminal, a line is printed every 10 s, and one at the end. If `quiet` is set,
 * nothing is printed. All output goes to stderr. Any thread may call sgt_progress_update and
 * sgt_progress_line, and may use the notice.
 *
 * On a narrow terminal, the bar becomes shorter first. After that, elements of the line are omitted
 * in this order: the rate; the elapsed time (but not the remaining time); all facts except the
 * first, starting with the last; the bar; the first fact. On terminals of at least thirty columns,
 * no element is cut off in the middle. A line is never longer than the terminal is wide, because
 * redrawing would not erase a line that wraps. */
#ifndef SGT_CLI_PROGRESS_H
#define SGT_CLI_PROGRESS_H

#include <stdint.h>

#include "loader/base/error.h"

typedef struct sgt_progress sgt_progress;

/* Create a progress bar. `unit` names what is counted, such as "step". If `unit` is "B", bytes are
 * counted, and are shown in KiB, MiB or GiB. Returns NULL if memory runs out. All other functions
 * accept NULL as p. */
sgt_progress *sgt_progress_new(const char *unit, int quiet);
/* Show that `done` of `total` units are done; `total` is 0 if it is unknown. `facts` is a list of
 * short texts, separated by tabs, that are shown to the right of the bar, with the most important
 * first. `from` is the value of `done` when this process started: work done before a resume does
 * not count in the rate. */
void sgt_progress_update(sgt_progress *p, uint64_t done, uint64_t total, uint64_t from,
                         const char *facts);
/* Print a line, such as the result of an evaluation, above the bar. Without a terminal, just print
 * the line. */
void sgt_progress_line(sgt_progress *p, const char *line);
/* Return a notice (a callback for a library's messages) that prints each message above the bar as
 * "PROGRAM: line". The notice may be used until sgt_progress_end, and the string `program` must
 * stay valid until that call. */
sgt_notice sgt_progress_notice(sgt_progress *p, const char *program);
/* Make sgt_progress_end print the last state even if stderr is not a terminal and no line has been
 * printed yet, because the run took less than 10 s. By default, it prints nothing in that case. */
void sgt_progress_keep_last(sgt_progress *p);
/* Draw the last state, end the line and free p. p may be NULL. */
void sgt_progress_end(sgt_progress *p);

#endif
