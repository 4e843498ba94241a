/* wrap.h: lines for people, broken between words where the terminal they go to is narrower than
 * they are. A file or a pipe gets each line whole. */
#ifndef SGT_CLI_WRAP_H
#define SGT_CLI_WRAP_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* Return the columns of the terminal behind `fd`; 0 if it is no terminal, or one that does not say
 * how wide it is. */
int sgt_columns(int fd);

/* Copy `text` into out[size], cut to fit, and return out. With `columns` above 0, a line that is
 * longer is broken at blanks, and what follows is indented by two more than its beginning. A word
 * that is longer than a line is left whole, unless it has a | to break it behind. */
char *sgt_wrap(char *out, size_t size, const char *text, int columns);

/* Print the text and a newline, wrapped if `to` is a terminal. */
void sgt_put_line(FILE *to, const char *fmt, ...) SGT_PRINTF(2, 3);

#endif
