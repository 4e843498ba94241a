/* talk.h: functions for the text that programs print: numbers with units, notices, lines that fit a
 * terminal, and bytes that should be UTF-8 but may not be. */
#ifndef SGT_CLI_TALK_H
#define SGT_CLI_TALK_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "loader/base/format.h"

/* Further number formats. As in base/format.h, each call writes to buf[n] and returns buf. */
/* "25.0 M" followed by unit, such as "25.0 Mtokens/s" */
char *sgt_format_rate(char *buf, size_t n, double per_s, const char *unit);
char *sgt_format_time(char *buf, size_t n, double seconds); /* "1:02:03", "00:42" */
/* "1 token", "1,234 tokens", "0 tokens" */
const char *sgt_format_things(char *buf, size_t n, uint64_t count, const char *singular,
                              const char *plural);

/* Return whether standard error is a terminal whose cursor can be moved: not a file, not a pipe,
 * and not TERM=dumb. No program prints colours, so NO_COLOR has no effect. */
int sgt_can_redraw(void);

/* Return how many columns the terminal `fd` has; 0 if fd is no terminal or its width is unknown. */
int sgt_columns(int fd);

/* Copy `text` to out[size], cut if it does not fit, and return out. With `columns` above 0, lines
 * that are longer are broken at blanks. If the line is a row of a table (columns separated by three
 * or more blanks), its continuation is aligned with the last column; otherwise it is indented by
 * two more columns. A word longer than a line stays whole. */
char *sgt_wrap(char *out, size_t size, const char *text, int columns);

/* Print the text and a newline to `to`. If `to` is a terminal, wrap the text to its width. */
void sgt_put_line(FILE *to, const char *fmt, ...) SGT_PRINTF(2, 3);

/* A text of several lines on standard output, wrapped for a terminal: print it to the stream that
 * sgt_wrapped_open returns, then close it.
 *
 *     sgt_wrapped w;
 *     FILE *to = sgt_wrapped_open(&w, sgt_columns(STDOUT_FILENO));
 *     fprintf(to, ...);
 *     sgt_wrapped_close(&w); */
typedef struct sgt_wrapped {
    FILE *to;
    char *text;
    size_t n;
    int columns;
} sgt_wrapped;
/* Return a stream that collects text in memory; its lines will be wrapped at `columns` (0: never).
 * If memory runs out, this function and sgt_wrapped_close end the program. */
FILE *sgt_wrapped_open(sgt_wrapped *w, int columns);
void sgt_wrapped_close(sgt_wrapped *w);

/* Print "PROGRAM: LINE" on stderr. If there is a progress bar, erase it first; it is drawn again
 * below the line. */
void sgt_talk_line(const char *program, const char *line);

/* Return a notice that prints "PROGRAM: line" on stderr, or nothing if `quiet`. The string
 * `program` must stay valid as long as the notice is used. */
sgt_notice sgt_talk_notice(const char *program, int quiet);

/* Print the n bytes at s on standard output and return how many of them were printed. Unless `end`
 * is set, leave out an incomplete character at the end. If `terminal` is set, print control
 * characters other than newline and tab, and bytes that are not UTF-8, as \xNN. */
size_t sgt_print_text(const char *s, size_t n, int terminal, int end);

/* Call `add` for each complete line of the file FOLDER/NAME, with the parsed JSON, or with NULL if
 * the line is not JSON or is longer than 64 KiB. Unless half is NULL, set *half to 1 if the last
 * line is incomplete, for example because it is being written. A missing file counts as empty. */
int sgt_json_lines(const char *folder, const char *name, void (*add)(void *ctx, json_t *line),
                   void *ctx, int *half, sgt_error *err);

/* Return the n bytes of text as a JSON string, with U+FFFD for each ill-formed UTF-8 sequence; NULL
 * if memory runs out. */
json_t *sgt_json_text(const char *text, size_t n);
json_t *sgt_json_string(const char *text); /* the same for a NUL-terminated text */

/* Return a JSON array of n ids, of `width` bytes each. Those of 4 bytes may be negative. */
json_t *sgt_json_ids(const void *ids, size_t width, size_t n);

/* Print the value and a newline on standard output, with jansson's `flags`. Takes ownership of the
 * value; NULL means that memory ran out when it was created. Returns 0 or a negative SGT_E*. */
int sgt_print_json(json_t *value, size_t flags, sgt_error *err);

/* Print the object of --json as readable lines on standard output. The first line is "NAME: WHAT",
 * which stands for the first two members. Each other member that is not null, false, 0 or empty
 * gets a line with its name and its value. For an object, the value is a list of "name value"
 * pairs; for an array of strings, the strings; for another array, its length. Members whose name
 * ends in "bytes" are sizes. */
void sgt_print_facts(const char *name, const char *what, const json_t *facts);

/* If `json` is set, print the facts as an indented JSON document. Otherwise, unless `quiet` is set,
 * print them with sgt_print_facts. Takes ownership of facts, which may be NULL as for
 * sgt_print_json. */
int sgt_print_result(int json, int quiet, const char *name, const char *what, json_t *facts,
                     sgt_error *err);

/* Flush standard output. Returns SGT_EIO if this or any earlier output to it failed, else 0. */
int sgt_flush_results(sgt_error *err);

/* Return the command line as one would type it in a shell. Words are quoted unless they have only
 * letters, digits and a few signs. The caller must free it. Ends the program if memory runs out. */
char *sgt_command_line(const char *program, int argc, char **argv);

#endif
