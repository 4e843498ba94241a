/* talk.h: functions for text that programs print: numbers with units, notices, lines that fit the
 * terminal, and bytes that may not be valid UTF-8. */
#ifndef SGT_CLI_TALK_H
#define SGT_CLI_TALK_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "loader/base/format.h"

/* ---- numbers ----
 *
 * These functions write a formatted number to the n bytes at `buf` and return `buf`, like those in
 * base/format.h. */

/* Format a rate with its unit, such as "25.0 Mtokens/s". Large rates get the prefix k, M, G or
 * T. */
char *sgt_format_rate(char *buf, size_t n, double per_s, const char *unit);
char *sgt_format_time(char *buf, size_t n, double seconds); /* "1:02:03", "00:42" */
/* Format a count and its noun in the singular or plural, such as "1 token" or "1,234 tokens". */
const char *sgt_format_things(char *buf, size_t n, uint64_t count, const char *singular,
                              const char *plural);

/* Return 1 if stderr is a terminal on which a line can be redrawn in place, otherwise 0. A terminal
 * with TERM=dumb cannot do this. */
int sgt_can_redraw(void);

/* Return the width in columns of the terminal with file descriptor fd, or 0 if fd is not a terminal
 * or if the width is unknown. */
int sgt_columns(int fd);

/* Copy the string `text` to the `size` bytes at `out`, broken into lines of at most `columns`
 * columns, and return `out`. If `columns` is 0, no line is broken. Text that does not fit into
 * `out` is cut off. Lines are broken only at spaces, so a word longer than a line stays whole. A
 * continuation line is indented by two columns more than the line that it continues. But if that
 * line is a row of a table (if it contains three consecutive spaces), the continuation line is
 * aligned with the last column of the table. */
char *sgt_wrap(char *out, size_t size, const char *text, int columns);

/* Print a formatted text and a newline to the stream `to`. If it is a terminal, wrap the text at
 * the width of the terminal. */
void sgt_put_line(FILE *to, const char *fmt, ...) SGT_PRINTF(2, 3);

/* Text of several lines that is wrapped before it is printed to standard output:
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
/* Open *w, and return a stream that collects text in memory. The text will be wrapped at `columns`
 * columns, or not wrapped if `columns` is 0. If memory runs out, the program ends. */
FILE *sgt_wrapped_open(sgt_wrapped *w, int columns);
/* Print the wrapped text to standard output, and close *w. If memory runs out, the program ends. */
void sgt_wrapped_close(sgt_wrapped *w);

/* Print "PROGRAM: LINE" to stderr. If stderr is a terminal, first erase the progress bar. (The next
 * update of the bar draws it again below the line.) */
void sgt_talk_line(const char *program, const char *line);

/* Return a callback for messages that prints each one to stderr as "PROGRAM: MESSAGE", or prints
 * nothing if `quiet` is 1. The string `program` must stay valid as long as the callback is used. */
sgt_notice sgt_talk_notice(const char *program, int quiet);

/* Print the n bytes at s to standard output, and return how many of them were printed. If `end` is
 * 0, an incomplete UTF-8 character at the end is not printed. If `terminal` is 1, invalid UTF-8 and
 * control characters other than newline and tab are printed as \xNN. */
size_t sgt_print_text(const char *s, size_t n, int terminal, int end);

/* Parse each line of the file FOLDER/NAME as JSON, and call `add` with the JSON value. If a line is
 * not valid JSON or has more than 64 KiB, call `add` with NULL. If the last line has no newline, it
 * is skipped, because a program may still be writing it. half: if not NULL, *half is set to 1 if
 * there is such a line, otherwise to 0 (an empty file leaves it unchanged). A missing file counts
 * as empty. Return 0 or a negative SGT_E*. */
int sgt_json_lines(const char *folder, const char *name, void (*add)(void *ctx, json_t *line),
                   void *ctx, int *half, sgt_error *err);

/* Return the n bytes at `text` as a JSON string, with each invalid UTF-8 sequence replaced with
 * U+FFFD. If memory runs out, the program ends, or NULL is returned. */
json_t *sgt_json_text(const char *text, size_t n);
json_t *sgt_json_string(const char *text); /* sgt_json_text for a NUL-terminated text */

/* Return v as a JSON integer, or JSON's null if v is UINT64_MAX, which stands for an unknown
 * number. */
json_t *sgt_json_count(uint64_t v);

/* Return the n token ids at `ids`, each `width` bytes wide, as a JSON array of integers. Ids that
 * are 4 bytes wide are signed. */
json_t *sgt_json_ids(const void *ids, size_t width, size_t n);

/* Print a JSON value and a newline to standard output, and release the value. flags: flags of
 * jansson's json_dumpf. Return 0 or a negative SGT_E*: SGT_ENOMEM if `value` is NULL, because
 * memory ran out when the caller created it. */
int sgt_print_json(json_t *value, size_t flags, sgt_error *err);

/* Print the results of a program as human-readable lines to standard output. facts: the JSON object
 * that --json would print. The first line is "NAME: WHAT", and takes the place of the first two
 * members of `facts`. Each of the other members is printed as a line with its name and value,
 * unless the value is null, false, 0 or empty. An object is printed as a list of "name value"
 * pairs, an array of strings as these strings, and any other array as its length. If a member's
 * name ends in "bytes", its value is printed as a size. */
void sgt_print_facts(const char *name, const char *what, const json_t *facts);

/* Print the JSON object `facts`, and release it. If `json` is 1, print it as an indented JSON
 * document. Otherwise, print it with sgt_print_facts, unless `quiet` is 1. Return 0 or a negative
 * SGT_E*: SGT_ENOMEM if `facts` is NULL, because memory ran out when the caller created it. */
int sgt_print_result(int json, int quiet, const char *name, const char *what, json_t *facts,
                     sgt_error *err);

/* Flush standard output. Return 0, or a negative SGT_E* if this or any earlier write to standard
 * output has failed. */
int sgt_flush_results(sgt_error *err);

/* Return the command line as a user would type it in a shell: words are quoted unless they consist
 * of letters, digits and a few harmless characters. The caller frees the string. If memory runs
 * out, the program ends. */
char *sgt_command_line(const char *program, int argc, char **argv);

#endif
