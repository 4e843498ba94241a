/* json_line.h: extracts one field from a line of JSON. The syntax of the entire line is checked
 * (RFC 8259), but no tree of values is built in memory. NaN, Infinity and -Infinity are accepted
 * outside the requested field, because Python's json module writes them.
 *
 *     sgt_json_path path;
 *     if (sgt_json_path_set(&path, "page.text", &err) < 0) ...;
 *     sgt_json_found t;
 *     const char *why = sgt_json_line(&path, line, scratch, 1, &t);
 *     if (!why) use(line + t.at, t.length);
 *
 * The library simdjson is not used, for three reasons. Version 3.0 (Debian 12) refuses any string
 * with a lone surrogate. The on-demand parser does not check the values that it skips, so it would
 * accept an invalid line. The index that simdjson builds takes four bytes for each byte of a line.
 * The parser here needs no index, because most of a line is usually one long string, which is
 * searched 16 bytes at a time. */
#ifndef SGT_JSON_LINE_H
#define SGT_JSON_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#define SGT_JSON_NAMES 16 /* maximum number of names in a path */
/* maximum nesting depth of objects and arrays */
#define SGT_JSON_DEPTH 65536
/* number of bytes after the newline of a line that must be readable; a scratch buffer must have
 * this many bytes more than the line */
#define SGT_JSON_PAD 16
#define SGT_JSON_NOWHERE SIZE_MAX

typedef struct sgt_json_path {
    /* names[0 ... count - 1]: the names on the path to a field, outermost first, without NULs; they
     * point into the string that was passed to sgt_json_path_set. lengths: lengths of the names in
     * bytes. */
    const char *names[SGT_JSON_NAMES];
    size_t lengths[SGT_JSON_NAMES], count;
} sgt_json_path;

/* Parse the path of a field into *p. "text" is a member of the object in a line, and "a.b" is the
 * member b of its member a. A name cannot contain a dot. The string `field` must outlive *p. Return
 * 0 or SGT_EUSAGE. */
int sgt_json_path_set(sgt_json_path *p, const char *field, sgt_error *err);

typedef struct sgt_json_found {
    /* Offset in the line, and length in bytes, of the field's text. If the line is bad, `at` is the
     * offset of the error; if the line is valid JSON in which the field is missing or is not a
     * string, `at` is SGT_JSON_NOWHERE. */
    size_t at, length;
    /* number of lone surrogates in the text, each of which was replaced with U+FFFD */
    uint64_t surrogates;
} sgt_json_found;

/* Find the string to which the path *p leads in the line, decode it, and store its offset and
 * length in *t. Return NULL, or the reason why the line is bad, as a static string. If a name
 * occurs twice in an object, the last occurrence is used, as in Python's json module.
 *
 * The line must be UTF-8 and begin with an object. It must end in a newline, after which
 * SGT_JSON_PAD bytes must be readable. If `whole` is 1, only white space may follow the object.
 * Escapes are decoded in place, with the help of the buffer `scratch`, which must have room for the
 * line plus SGT_JSON_PAD bytes. */
const char *sgt_json_line(const sgt_json_path *p, uint8_t *line, uint8_t *scratch, int whole,
                          sgt_json_found *t);

/* Find the value, of any type, to which the path *p leads in the line. Set *at to the offset of the
 * value's JSON text in the line, and *n to its length, or to 0 if there is no such value. The line
 * is not changed. The requirements for `line` and `scratch`, and the returned value, are those of
 * sgt_json_line. */
const char *sgt_json_value(const sgt_json_path *p, uint8_t *line, uint8_t *scratch, size_t *at,
                           size_t *n);

struct sgt_unit;
struct sgt_part;
/* Add each JSONL line in part p of the unit u to the unit as a record, collected in *next (see
 * sgt_unit_add_record). Return 1 if the run fails at a bad line, 0 if not, or a negative SGT_E*. */
int sgt_json_records(struct sgt_unit *u, const struct sgt_part *p, struct sgt_part *next,
                     sgt_error *err);

/* Prepare the n bytes at `line` for a strict JSON parser: outside strings, replace NaN, Infinity
 * and -Infinity with an empty array and spaces. A newline or a NUL must follow the n bytes. Return
 * NULL or, if the line contains a byte order mark outside strings, an error message. */
const char *sgt_json_mend(char *line, size_t n);

#endif
