/* json.h: limit the memory that parsing a JSON text takes, and write JSON without losing members
 * when memory runs out. jansson takes about 230 bytes for an empty object of two characters, so
 * even a small file could take much memory. The caller therefore states the maximum number of
 * values in a file of its kind.
 *
 *     json_t *o = NULL;
 *     // takes at most 400 bytes per value
 *     if ((rc = sgt_json_object(&o, text, n, MOST_VALUES, path, err)) < 0) ...; */
#ifndef SGT_BASE_JSON_H
#define SGT_BASE_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return SGT_EFORMAT if the JSON text in the n bytes at `text` has more than `most` values; names
 * of members do not count as values. The text need not be valid JSON. `path` is used in the
 * message. */
int sgt_json_fits(const char *text, size_t n, size_t most, const char *path, sgt_error *err);

/* Parse the n bytes at `text`, the content of the file `path`. It must be one JSON object with at
 * most `most` values. *out is set only on success. */
int sgt_json_object(json_t **out, const char *text, size_t n, size_t most, const char *path,
                    sgt_error *err);
/* Parse the file at `path`, which may have at most most_bytes bytes, as sgt_json_object does. */
int sgt_json_file(json_t **out, const char *path, size_t most_bytes, size_t most, sgt_error *err);

/* Return the JSON text in malloc'd memory, as json_dumps does. Return NULL if `json` is NULL, if it
 * has a value that JSON cannot express, or if memory runs out. (json_dumps may instead omit a
 * member if memory runs out. This function computes the size first, then allocates the memory, and
 * only then writes.) */
char *sgt_json_dumps(const json_t *json, size_t flags);

/* Return a new JSON string: v as 16 hex digits. NULL: out of memory. */
json_t *sgt_json_hex(uint64_t v);

#ifdef __cplusplus
}
#endif
#endif
