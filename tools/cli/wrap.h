/* wrap.h: breaks lines between words if a terminal is narrower than the lines. A file or a pipe
 * gets each line whole. */
#ifndef SGT_CLI_WRAP_H
#define SGT_CLI_WRAP_H

#include <stddef.h>
#include <stdio.h>

#include "loader/base/error.h"

/* Return how many columns the terminal `fd` has; 0 if fd is no terminal or its width is unknown. */
int sgt_columns(int fd);

/* Copy `text` to out[size], cut if it does not fit, and return out. With `columns` above 0, lines
 * that are longer are broken at blanks, and continued with two more columns of indentation. A word
 * longer than a line stays whole, unless it can be broken after a |. */
char *sgt_wrap(char *out, size_t size, const char *text, int columns);

/* Print the text and a newline to `to`, wrapped if that is a terminal. */
void sgt_put_line(FILE *to, const char *fmt, ...) SGT_PRINTF(2, 3);

#endif
