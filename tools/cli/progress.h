/* progress.h: a progress bar in one line: " 42%|######## | 84.1/200 MB [00:03<00:04, 25.0 MB/s]
 * facts". On a terminal it is redrawn in place 5 times a second, at the terminal's current width.
 * Without a terminal, a line is printed every 10 s, and one at the end. With `quiet`, nothing is
 * printed. All output goes to stderr. Any thread may call sgt_progress_update and
 * sgt_progress_line, and use the notice.
 *
 * On a narrow terminal, the bar becomes shorter first. Then whole parts are left out, in this
 * order: the rate, the elapsed time (the remaining time stays), the facts from the last to the
 * second, the bar, and the first fact. With at least thirty columns, no part is cut in the middle.
 * No line is longer than the terminal, because a redraw would not erase all of it. */
#ifndef SGT_CLI_PROGRESS_H
#define SGT_CLI_PROGRESS_H

#include <stdint.h>

#include "loader/base/error.h"

typedef struct sgt_progress sgt_progress;

/* Create a bar. `unit` names what is counted, such as "step"; "B" stands for bytes, which are shown
 * in KiB, MiB or GiB. Returns NULL if memory runs out; all other functions accept NULL. */
sgt_progress *sgt_progress_new(const char *unit, int quiet);
/* Show `done` of `total` (0: unknown). `facts` are shown after the bar: texts separated by tabs,
 * the most important first. from: value of `done` when this process began; work from before a
 * resume does not count in the rate. */
void sgt_progress_update(sgt_progress *p, uint64_t done, uint64_t total, uint64_t from,
                         const char *facts);
/* Print a whole line, such as the result of an evaluation, above the bar. Without a terminal, just
 * print it. */
void sgt_progress_line(sgt_progress *p, const char *line);
/* Return a notice that prints a library's messages as "PROGRAM: line" above the bar. The notice is
 * valid until sgt_progress_end; so must be the string `program`. */
sgt_notice sgt_progress_notice(sgt_progress *p, const char *program);
/* Make sgt_progress_end print the last state even if it normally would not: without a terminal,
 * after a run so short (under 10 s) that no line was printed. */
void sgt_progress_keep_last(sgt_progress *p);
/* Draw the last state, end the line and free p, which may be NULL. */
void sgt_progress_end(sgt_progress *p);

#endif
