/* json.h: bound the memory that parsing a JSON text takes, before it is parsed. jansson takes some
 * 230 bytes for an empty object of two characters, so a small file could take much memory. The
 * caller states the most values that its kind of file needs.
 *
 *     if ((rc = sgt_json_fits(text, n, MOST_VALUES, path, err)) < 0) ...;
 *     // takes at most 400 bytes a value
 *     json_t *o = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why); */
#ifndef SGT_BASE_JSON_H
#define SGT_BASE_JSON_H

#include <stddef.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return SGT_EFORMAT if text[n], JSON or not, would hold more than `most` values, not counting
 * names. */
int sgt_json_fits(const char *text, size_t n, size_t most, const char *path, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
