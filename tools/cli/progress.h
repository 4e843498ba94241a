/* progress.h: one calm line: " 42%|######## | 84.1/200 MB [00:03<00:04, 25.0 MB/s] facts". On a
 * terminal, redrawn in place 5 times a second, as wide as that is at the moment; elsewhere a line
 * every 10 s, and a last one; with `quiet`, nothing. Talks on stderr only. Any thread may call
 * update, line and the notice.
 *
 * On a narrow terminal the bar becomes shorter first. Then whole parts go, the least important ones
 * first: of items with facts how many there are in a second, and the time since the beginning (what
 * is left stays); facts, from the last one on; the bar. Nothing is cut in its middle as long as
 * there are thirty columns, and no line is longer than the terminal, on which it would leave half
 * of itself behind at each redraw. */
#ifndef SGT_CLI_PROGRESS_H
#define SGT_CLI_PROGRESS_H

#include <stdint.h>

#include "base/error.h"

typedef enum sgt_progress_unit { SGT_PROGRESS_ITEMS, SGT_PROGRESS_BYTES } sgt_progress_unit;

typedef struct sgt_progress sgt_progress;

/* unit_name: "it", "B". NULL where memory is out, which the others take. */
sgt_progress *sgt_progress_new(const char *unit_name, sgt_progress_unit unit, int quiet);
/* done of total (0: not known); facts: what follows the bar, separated by tabs, the most important
 * one first. from: where this run began (resumed steps do not count as speed). */
void sgt_progress_update(sgt_progress *p, uint64_t done, uint64_t total, uint64_t from,
                         const char *facts);
/* Prints a whole line above the bar (or plainly), e.g. an evaluation. */
void sgt_progress_line(sgt_progress *p, const char *line);
/* What a library has to say, as "PROGRAM: line" above the bar. Until sgt_progress_end; the name
 * must outlive it. */
sgt_notice sgt_progress_notice(sgt_progress *p, const char *program);
/* Print the last state at the end, also where no line came before it because all took less than 10
 * s. */
void sgt_progress_keep_last(sgt_progress *p);
/* draws the last state, ends the line, frees; NULL is fine */
void sgt_progress_end(sgt_progress *p);

#endif
