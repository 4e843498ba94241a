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

/* Functions that format numbers, in addition to those in base/format.h. Like those, each writes to
 * the n bytes at `buf` and returns `buf`. */
/* Format a rate. Large rates get a unit prefix, as in "25.0 Mtokens/s". */
char *sgt_format_rate(char *buf, size_t n, double per_s, const char *unit);
char *sgt_format_time(char *buf, size_t n, double seconds); /* "1:02:03", "00:42" */
/* Format a count with its noun in the singular or plural: "1 token", "1,234 tokens". */
const char *sgt_format_things(char *buf, size_t n, uint64_t count, const char *singular,
                              const char *plural);

/* Return whether stderr is a terminal on which a line can be redrawn in place. A terminal with
 * TERM=dumb cannot do this. (Programs print no colours, so they need not check NO_COLOR.) */
int sgt_can_redraw(void);

/* Return the width in columns of the terminal that is open as file descriptor `fd`. Return 0 if
 * `fd` is not a terminal or the width is unknown. */
int sgt_columns(int fd);

/* Copy the string `text` to the `size` bytes at `out`, breaking it into lines of at most `columns`
 * columns, and return `out`. If `columns` is 0, lines are not broken. Text that does not fit into
 * `out` is cut off. Lines are broken only at spaces, so a word that is longer than a line is not
 * broken. Continuation lines are indented by two columns more than their line. In a table row
 * (recognized by three or more consecutive spaces), they are aligned with the last column
 * instead. */
char *sgt_wrap(char *out, size_t size, const char *text, int columns);

/* Print a formatted text and a newline to the stream `to`. If `to` is a terminal, wrap the text at
 * the terminal's width. */
void sgt_put_line(FILE *to, const char *fmt, ...) SGT_PRINTF(2, 3);

/* Text of several lines for standard output. If standard output is a terminal, the lines are
 * wrapped. Write the text to the stream that sgt_wrapped_open returns.
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
/* sgt_wrapped_open returns a stream that collects text in memory. sgt_wrapped_close prints the
 * text, with lines wrapped at `columns` columns, or not wrapped if `columns` is 0. If memory runs
 * out, both functions end the program. */
FILE *sgt_wrapped_open(sgt_wrapped *w, int columns);
void sgt_wrapped_close(sgt_wrapped *w);

/* Print "PROGRAM: LINE" to stderr. If stderr is a terminal, first erase the progress bar; its next
 * update draws the bar again below the line. */
void sgt_talk_line(const char *program, const char *line);

/* Return a callback that prints each message to stderr as "PROGRAM: line", or prints nothing if
 * `quiet` is 1. The string `program` must stay valid as long as the callback is used. */
sgt_notice sgt_talk_notice(const char *program, int quiet);

/* Print the n bytes at s to standard output, and return the number of bytes printed. If `end` is 0,
 * an incomplete character at the end is not printed. If `terminal` is 1, bytes that are not valid
 * UTF-8, and control characters other than newline and tab, are printed as \xNN. */
size_t sgt_print_text(const char *s, size_t n, int terminal, int end);

/* Parse each complete line of the file FOLDER/NAME as JSON, and call `add` with the value. If a
 * line is not valid JSON or is longer than 64 KiB, call `add` with NULL. A last line without a
 * newline is skipped, because a program may still be writing it. If `half` is not NULL, set *half
 * to 1 if there is such a line. A missing file counts as empty. */
int sgt_json_lines(const char *folder, const char *name, void (*add)(void *ctx, json_t *line),
                   void *ctx, int *half, sgt_error *err);

/* Return the n bytes at `text` as a JSON string, with each invalid UTF-8 sequence replaced with
 * U+FFFD. Return NULL if memory runs out. */
json_t *sgt_json_text(const char *text, size_t n);
json_t *sgt_json_string(const char *text); /* the same for a NUL-terminated text */

/* Return v as a JSON integer. If v is UINT64_MAX, which stands for an unknown number, return
 * null. */
json_t *sgt_json_count(uint64_t v);

/* Return a JSON array of the n token ids at `ids`, which are `width` bytes wide. Ids of 4 bytes are
 * signed. */
json_t *sgt_json_ids(const void *ids, size_t width, size_t n);

/* Print a JSON value and a newline to standard output, with jansson's `flags`. Takes ownership of
 * the value. If the value is NULL, report that memory ran out while it was created. Returns 0 or a
 * negative SGT_E*. */
int sgt_print_json(json_t *value, size_t flags, sgt_error *err);

/* Print results as human-readable lines to standard output. `facts` is the JSON object that --json
 * would print. The first line is "NAME: WHAT"; it stands for the first two members of `facts`,
 * which are not printed. Each other member gets a line with its name and value, unless the value is
 * null, false, 0 or empty. An object is printed as a list of "name value" pairs, an array of
 * strings as these strings, and any other array as its length. If a member's name ends in "bytes",
 * its value is printed as a size. */
void sgt_print_facts(const char *name, const char *what, const json_t *facts);

/* Print `facts`: as an indented JSON document if `json` is 1; otherwise with sgt_print_facts, or
 * not at all if `quiet` is 1. Takes ownership of `facts`. If `facts` is NULL, report that memory
 * ran out while it was created. */
int sgt_print_result(int json, int quiet, const char *name, const char *what, json_t *facts,
                     sgt_error *err);

/* Flush standard output. Returns 0, or SGT_EIO if this flush or any earlier write to standard
 * output has failed. */
int sgt_flush_results(sgt_error *err);

/* Return the command line as a user would type it in a shell. A word is quoted unless it consists
 * only of letters, digits and a few harmless characters. The caller frees the string. If memory
 * runs out, the program ends. */
char *sgt_command_line(const char *program, int argc, char **argv);

#endif
