/* json.h: limit the memory that it takes to parse JSON, and write JSON without losing object
 * members when memory runs out. The library jansson takes about 230 bytes for an empty object,
 * "{}", so even a small file could take much memory. Therefore, the caller states the maximum
 * number of values that a valid file may have.
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

/* Return SGT_EFORMAT if the JSON text in the n bytes at `text` has more than `most` values,
 * otherwise 0. Names of object members do not count as values. The text need not be valid JSON. The
 * error message begins with `path`. */
int sgt_json_fits(const char *text, size_t n, size_t most, const char *path, sgt_error *err);

/* Parse the n bytes at `text`, the content of the file `path`, which must be one JSON object with
 * at most `most` values. Set *out only on success. */
int sgt_json_object(json_t **out, const char *text, size_t n, size_t most, const char *path,
                    sgt_error *err);
/* Parse the file at `path` as sgt_json_object does. Return an error if the file has more than
 * most_bytes bytes. */
int sgt_json_file(json_t **out, const char *path, size_t most_bytes, size_t most, sgt_error *err);

/* Return `json` as JSON text in malloc'd memory. Unlike json_dumps, this function never omits an
 * object member when memory runs out: it computes the size of the text and allocates the memory
 * before it writes anything. Return NULL if `json` is NULL, if it contains a value that JSON cannot
 * express, or if memory runs out. */
char *sgt_json_dumps(const json_t *json, size_t flags);

/* Return a new JSON string that holds v as 16 hex digits, or NULL if memory runs out. */
json_t *sgt_json_hex(uint64_t v);

#ifdef __cplusplus
}
#endif
#endif
