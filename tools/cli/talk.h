/* talk.h: functions with which all programs talk to people: units, notices, lines that fit a
 * terminal, and bytes that should be UTF-8 but may not be. */
#ifndef SGT_CLI_TALK_H
#define SGT_CLI_TALK_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "loader/base/format.h"

/* More formats of numbers. As in base/format.h, each call writes to buf[n] and returns buf. */
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
 * that are longer are broken at blanks. They continue below the last column of a table, which begins
 * after three blanks or more; otherwise with two more columns of indentation. A word longer than a
 * line stays whole. */
char *sgt_wrap(char *out, size_t size, const char *text, int columns);

/* Print the text and a newline to `to`, wrapped if that is a terminal. */
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
/* Return a stream in memory, whose text wraps after `columns` (0: never). If memory runs out, both
 * functions end the program. */
FILE *sgt_wrapped_open(sgt_wrapped *w, int columns);
void sgt_wrapped_close(sgt_wrapped *w);

/* Print "PROGRAM: LINE" on stderr. If there is a progress bar, erase it first; it is drawn again below
 * the line. */
void sgt_talk_line(const char *program, const char *line);

/* Return a notice that prints "PROGRAM: line" on stderr, or nothing if `quiet`. The string `program`
 * must live as long. */
sgt_notice sgt_talk_notice(const char *program, int quiet);

/* Print the n bytes at s on standard output, without those of a last character that is not complete
 * yet, unless `end` is set; return how many were printed. For a terminal, control characters except
 * newline and tab, and bytes that are not UTF-8, appear as \xNN. */
size_t sgt_print_text(const char *s, size_t n, int terminal, int end);

/* Call `add` with the JSON of each complete line of the file `name` of a folder, or with NULL if a line is
 * no JSON or has more than 64 KiB. *half, unless half is NULL: whether the last line is incomplete,
 * because it is being written. Without the file, there are no lines. */
int sgt_json_lines(const char *folder, const char *name, void (*add)(void *ctx, const json_t *line),
                   void *ctx, int *half, sgt_error *err);

/* Return the text as a JSON string, with U+FFFD for each ill-formed subpart; NULL if memory runs
 * out. */
json_t *sgt_json_text(const char *text, size_t n);
json_t *sgt_json_string(const char *text); /* the same of a text that ends with a NUL */

/* Return a JSON array of n ids, of `width` bytes each. Those of 4 bytes may be negative. */
json_t *sgt_json_ids(const void *ids, size_t width, size_t n);

/* Print the value and a newline on standard output, with jansson's `flags`. Takes ownership of the
 * value; NULL stands for memory that ran out. Returns 0 or a negative SGT_E*. */
int sgt_print_json(json_t *value, size_t flags, sgt_error *err);

/* Print for people, on standard output, what an object for --json holds: "NAME: WHAT", which tells
 * its first two members, then a line for each other member that is not null, false, 0 or empty: its
 * name and its value, or its pairs of names and values, or the texts of a list, or the length of
 * another list. Names of sizes end in "bytes". */
void sgt_print_facts(const char *name, const char *what, const json_t *facts);

/* Print the facts, which are freed, and may be NULL as for sgt_print_json: as an indented JSON document
 * if `json`; otherwise for people, unless `quiet`. */
int sgt_print_result(int json, int quiet, const char *name, const char *what, json_t *facts,
                     sgt_error *err);

/* Flush standard output. Returns SGT_EIO if this or any earlier output to it failed, else 0. */
int sgt_flush_results(sgt_error *err);

/* Return the command line as one would type it in a shell: words with other characters than
 * letters, digits and a few signs are quoted. The caller must free it. Ends the program if memory
 * runs out. */
char *sgt_command_line(const char *program, int argc, char **argv);

#endif
