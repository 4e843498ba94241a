/* json_line.h: one field out of a line of JSON, which is checked as a whole (RFC 8259) and never
 * built in memory.
 *
 *     sgt_json_path path;
 *     if (sgt_json_path_set(&path, "page.text", &err) < 0) ...;
 *     sgt_json_text t;
 *     const char *why = sgt_json_line(&path, line, scratch, &t);
 *     if (!why) use(line + t.at, t.length);
 *
 * Why not simdjson: Debian 12's (3.0) refuses a string with a lone surrogate as a whole, its
 * on-demand parser does not look into what it skips, so that a broken line would pass, and its
 * index takes four bytes for each of a line's. Here nothing is indexed: what a line of text
 * consists of is one long string, and that is searched 16 bytes at a time. */
#ifndef SGT_JSON_LINE_H
#define SGT_JSON_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SGT_JSON_NAMES 16    /* of a path */
#define SGT_JSON_DEPTH 65536 /* objects and arrays within one another; more are refused */
/* bytes after the newline, and after n bytes of scratch, that must be there */
#define SGT_JSON_PAD 16
#define SGT_JSON_NOWHERE SIZE_MAX

typedef struct sgt_json_path {
    const char *names[SGT_JSON_NAMES]; /* into the text it was set from, not ended by NUL */
    size_t lengths[SGT_JSON_NAMES], count;
} sgt_json_path;

/* From "text" or "a.b" (names that hold a dot themselves cannot be said); `field` must outlive it.
 * SGT_EUSAGE. */
int sgt_json_path_set(sgt_json_path *p, const char *field, sgt_error *err);

typedef struct sgt_json_text {
    /* of the text in the line; of a bad one at is where it went wrong, or SGT_JSON_NOWHERE */
    size_t at, length;
    uint64_t surrogates; /* halves without the other half, each now U+FFFD */
} sgt_json_text;

/* The string at the end of the path in the object that is all of a line, which must be UTF-8 and
 * end in a newline, with SGT_JSON_PAD more bytes to be read after it. Escapes are taken out in
 * place, through scratch (room for the line and SGT_JSON_PAD bytes). Where a name comes twice the
 * last one counts, as in Python's json. NULL, or why the line is bad: a text that stays. */
const char *sgt_json_line(const sgt_json_path *p, uint8_t *line, uint8_t *scratch,
                          sgt_json_text *t);

#ifdef __cplusplus
}
#endif
#endif
