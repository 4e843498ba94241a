/* json_line.h: extracts one field from a line of JSON. The whole line is checked (RFC 8259), but no
 * object is built in memory. Outside the field, NaN, Infinity and -Infinity are accepted, because
 * Python's json module writes them.
 *
 *     sgt_json_path path;
 *     if (sgt_json_path_set(&path, "page.text", &err) < 0) ...;
 *     sgt_json_found t;
 *     const char *why = sgt_json_line(&path, line, scratch, 1, &t);
 *     if (!why) use(line + t.at, t.length);
 *
 * simdjson is not used, for three reasons. Its version 3.0 (Debian 12) refuses any string with a
 * lone surrogate. Its on-demand parser does not check what it skips, so a broken line would pass.
 * Its index takes four bytes for each byte of a line. This parser needs no index: a line of text is
 * mostly one long string, which is searched 16 bytes at a time. */
#ifndef SGT_JSON_LINE_H
#define SGT_JSON_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#define SGT_JSON_NAMES 16 /* maximum number of names in a path */
/* maximum number of objects and arrays that are open at the same time */
#define SGT_JSON_DEPTH 65536
/* number of bytes after a line's newline that must be readable; scratch must be this much longer
 * than the line */
#define SGT_JSON_PAD 16
#define SGT_JSON_NOWHERE SIZE_MAX

typedef struct sgt_json_path {
    /* names of the path, without NULs; they point into the string passed to sgt_json_path_set */
    const char *names[SGT_JSON_NAMES];
    size_t lengths[SGT_JSON_NAMES], count;
} sgt_json_path;

/* Parse the path of a field, such as "text" or "a.b"; a name cannot contain a dot. The string
 * `field` must outlive *p. Return 0 or SGT_EUSAGE. */
int sgt_json_path_set(sgt_json_path *p, const char *field, sgt_error *err);

typedef struct sgt_json_found {
    /* Offset and length of the text in the line. If the line is bad, `at` is the offset of the
     * error or, if the line is valid JSON without the text, SGT_JSON_NOWHERE. */
    size_t at, length;
    uint64_t surrogates; /* number of lone surrogates in the text, which are replaced by U+FFFD */
} sgt_json_found;

/* Find the string at the end of the path, and set *t. Return NULL, or the reason why the line is
 * bad, as a static string. If a name occurs twice, the last occurrence counts, as in Python's json
 * module.
 *
 * The line must begin with an object, be UTF-8, and end in a newline, with SGT_JSON_PAD readable
 * bytes after it. If `whole` is 1, nothing may follow the object. Escapes are decoded in place;
 * scratch must have room for the line plus SGT_JSON_PAD bytes. */
const char *sgt_json_line(const sgt_json_path *p, uint8_t *line, uint8_t *scratch, int whole,
                          sgt_json_found *t);

/* Find the value of any type at the end of the path. Set *at and *n to the offset and length of its
 * text in the line; *n is 0 if there is no value. The line is not changed. The line, scratch and
 * the result are as in sgt_json_line. */
const char *sgt_json_value(const sgt_json_path *p, uint8_t *line, uint8_t *scratch, size_t *at,
                           size_t *n);

struct sgt_unit;
struct sgt_part;
/* Add the lines of u's part p to *next, as records (sgt_unit_add_record). Return 1 if a bad line
 * ended the unit. */
int sgt_json_records(struct sgt_unit *u, const struct sgt_part *p, struct sgt_part *next,
                     sgt_error *err);

/* Prepare the n bytes at `line` for a strict JSON parser: outside strings, replace NaN, Infinity
 * and -Infinity by an empty list and spaces. The line must be followed by a newline or NUL. Return
 * NULL, or the reason why the line is bad: it has a byte order mark outside strings. */
const char *sgt_json_mend(char *line, size_t n);

#endif
