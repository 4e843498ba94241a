/* json.h: limit the memory that parsing a JSON text takes, before it is parsed; and write JSON
 * without dropping members when memory runs out. jansson takes about 230 bytes for an empty object
 * of two characters, so a small file could take much memory. The caller states the largest number
 * of values that its kind of file needs.
 *
 *     json_t *o = NULL;
 *     // takes at most 400 bytes a value
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

/* Return SGT_EFORMAT if text[n] would hold more than `most` values, not counting the names of
 * members. The text need not be valid JSON. */
int sgt_json_fits(const char *text, size_t n, size_t most, const char *path, sgt_error *err);

/* Parse text[n], the content of the file `path`, which must be an object of at most `most` values.
 * *out is set only on success. */
int sgt_json_object(json_t **out, const char *text, size_t n, size_t most, const char *path,
                    sgt_error *err);

/* Return malloc'd text, as json_dumps does. If memory runs out, json_dumps may omit a member
 * without an error. This function therefore computes the size first, allocates the memory, and then
 * writes. Return NULL if json is NULL, if it holds a value that JSON cannot express, or if memory
 * runs out. */
char *sgt_json_dumps(const json_t *json, size_t flags);

/* Return a JSON string of the 16 hex digits of v, or NULL if out of memory. */
json_t *sgt_json_hex(uint64_t v);

#ifdef __cplusplus
}
#endif
#endif
