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

/* A text of several lines on standard output, wrapped if that is a terminal: print it to the stream
 * that sgt_wrapped_open returns, then close it.
 *
 *     sgt_wrapped w;
 *     FILE *to = sgt_wrapped_open(&w);
 *     fprintf(to, ...);
 *     sgt_wrapped_close(&w); */
typedef struct sgt_wrapped {
    FILE *to;
    char *text;
    size_t n;
} sgt_wrapped;
/* Return a stream in memory; stdout itself if that is no terminal, or if memory runs out. */
FILE *sgt_wrapped_open(sgt_wrapped *w);
void sgt_wrapped_close(sgt_wrapped *w);

#endif
