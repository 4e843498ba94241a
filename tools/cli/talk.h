/* talk.h: functions for the text that programs print: numbers with units, notices, lines that fit a
 * terminal, and bytes that may not be valid UTF-8. */
#ifndef SGT_CLI_TALK_H
#define SGT_CLI_TALK_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "loader/base/format.h"

/* More functions that format numbers. Like those in base/format.h, each writes to the n bytes at
 * `buf` and returns `buf`. */
/* Format a rate; large numbers get a unit prefix, as in "25.0 Mtokens/s". */
char *sgt_format_rate(char *buf, size_t n, double per_s, const char *unit);
char *sgt_format_time(char *buf, size_t n, double seconds); /* "1:02:03", "00:42" */
/* Format a count with its noun: "1 token", "1,234 tokens", "0 tokens". */
const char *sgt_format_things(char *buf, size_t n, uint64_t count, const char *singular,
                              const char *plural);

/* Return whether stderr is a terminal whose cursor can be moved, which is not so for TERM=dumb.
 * (Programs print no colours, so NO_COLOR has no effect.) */
int sgt_can_redraw(void);

/* Return the width of the terminal `fd` in columns, or 0 if fd is not a terminal or its width is
 * unknown. */
int sgt_columns(int fd);

/* Copy `text` to the `size` bytes at `out`, broken into lines of at most `columns` columns, and
 * return `out`. If `columns` is 0, lines are not broken. Text that does not fit into `out` is cut
 * off. Lines are broken at spaces; a word that is longer than a line stays whole. A continuation
 * line is indented by two more columns. In a row of a table (columns separated by three or more
 * spaces), it is aligned with the last column instead. */
char *sgt_wrap(char *out, size_t size, const char *text, int columns);

/* Print a formatted text and a newline to the stream `to`. If `to` is a terminal, wrap the text to
 * the terminal's width. */
void sgt_put_line(FILE *to, const char *fmt, ...) SGT_PRINTF(2, 3);

/* A text of several lines for standard output, wrapped if that is a terminal. Print the text to the
 * stream that sgt_wrapped_open returns.
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
/* Return a stream that collects text in memory. sgt_wrapped_close prints the text, wrapped at
 * `columns` (0: not wrapped). If memory runs out, both functions end the program. */
FILE *sgt_wrapped_open(sgt_wrapped *w, int columns);
void sgt_wrapped_close(sgt_wrapped *w);

/* Print "PROGRAM: LINE" on stderr. A progress bar is erased first, and is drawn again below the
 * line at its next update. */
void sgt_talk_line(const char *program, const char *line);

/* Return a callback that prints each message on stderr as "PROGRAM: line". If `quiet` is set, it
 * prints nothing. The string `program` must stay valid as long as the callback is used. */
sgt_notice sgt_talk_notice(const char *program, int quiet);

/* Print the n bytes at s on standard output and return the number of bytes printed. An incomplete
 * character at the end is not printed unless `end` is set. If `terminal` is set, control characters
 * other than newline and tab, and bytes that are not UTF-8, are printed as \xNN. */
size_t sgt_print_text(const char *s, size_t n, int terminal, int end);

/* Call `add` for each complete line of the file FOLDER/NAME, with the parsed JSON. If a line is not
 * JSON, or is longer than 64 KiB, call `add` with NULL. If `half` is not NULL, set *half to 1 if
 * the last line is incomplete, for example because it is being written. A missing file counts as
 * empty. */
int sgt_json_lines(const char *folder, const char *name, void (*add)(void *ctx, json_t *line),
                   void *ctx, int *half, sgt_error *err);

/* Return the n bytes at `text` as a JSON string in which each ill-formed UTF-8 sequence is replaced
 * by U+FFFD. Return NULL if memory runs out. */
json_t *sgt_json_text(const char *text, size_t n);
json_t *sgt_json_string(const char *text); /* the same for a NUL-terminated text */

/* Return v as a JSON integer, or null if v is UINT64_MAX, which stands for an unknown number. */
json_t *sgt_json_count(uint64_t v);

/* Return a JSON array of n ids of `width` bytes each. Ids of 4 bytes are signed. */
json_t *sgt_json_ids(const void *ids, size_t width, size_t n);

/* Print the JSON value and a newline on standard output, with jansson's `flags`. Takes ownership of
 * the value. NULL is reported as out of memory, because creating the value failed. Returns 0 or a
 * negative SGT_E*. */
int sgt_print_json(json_t *value, size_t flags, sgt_error *err);

/* Print the results that --json would print, as readable lines on standard output. The first line
 * is "NAME: WHAT"; it replaces the first two members of `facts`. Each other member gets a line with
 * its name and value, unless the value is null, false, 0 or empty. An object is printed as a list
 * of "name value" pairs, an array of strings as its strings, and any other array as its length. A
 * member whose name ends in "bytes" is printed as a size. */
void sgt_print_facts(const char *name, const char *what, const json_t *facts);

/* Print `facts` as an indented JSON document if `json` is set. Otherwise print them with
 * sgt_print_facts, unless `quiet` is set. Takes ownership of `facts`. NULL is reported as out of
 * memory. */
int sgt_print_result(int json, int quiet, const char *name, const char *what, json_t *facts,
                     sgt_error *err);

/* Flush standard output. Returns 0, or SGT_EIO if this or any earlier output to it has failed. */
int sgt_flush_results(sgt_error *err);

/* Return the command line as it would be typed in a shell. Words are quoted unless they have only
 * letters, digits and some harmless characters. The caller frees it. If memory runs out, the
 * program ends. */
char *sgt_command_line(const char *program, int argc, char **argv);

#endif
