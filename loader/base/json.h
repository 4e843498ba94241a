/* json.h: how much memory a JSON text would take, told before it is parsed. An empty object of two
 * characters takes jansson some 230 bytes, so that the size of a file bounds nothing: each kind of
 * file has a number of values that it can need at most.
 *
 *     if ((rc = sgt_json_fits(text, n, MOST_VALUES, path, err)) < 0) ...;
 *     json_t *o = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);      // at most 400 bytes a value */
#ifndef SGT_BASE_JSON_H
#define SGT_BASE_JSON_H

#include <stddef.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* SGT_EFORMAT where text[n], whether it is JSON or not, would hold more than `most` values, names
 * not counted. */
int sgt_json_fits(const char *text, size_t n, size_t most, const char *path, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
