/* json_dumps.h: JSON as text. jansson's json_dumps leaves a name out if memory runs out while it is
 * written, and reports no error. This one counts the bytes first, then writes into memory that it
 * has. */
#ifndef SGT_JSON_DUMPS_H
#define SGT_JSON_DUMPS_H

#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return malloc'd text, as json_dumps does; NULL if json is NULL, if it holds what JSON cannot, or
 * if memory runs out. */
char *sgt_json_dumps(const json_t *json, size_t flags);

#ifdef __cplusplus
}
#endif
#endif
