/* wrap.h: breaks lines between words if the terminal they go to is narrower. A file or a pipe gets
 * each line whole. */
#ifndef SGT_CLI_WRAP_H
#define SGT_CLI_WRAP_H

#include <stddef.h>
#include <stdio.h>

#include "loader/base/error.h"

/* Return the columns of the terminal behind `fd`; 0 if it is no terminal or does not tell its
 * width. */
int sgt_columns(int fd);

/* Copy `text` into out[size], cut to fit, and return out. With `columns` above 0, a longer line is
 * broken at blanks, and its continuation is indented by two more columns. A word longer than a line
 * stays whole, unless it can be broken after a |. */
char *sgt_wrap(char *out, size_t size, const char *text, int columns);

/* Print the text and a newline, wrapped if `to` is a terminal. */
void sgt_put_line(FILE *to, const char *fmt, ...) SGT_PRINTF(2, 3);

#endif
