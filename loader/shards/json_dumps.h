/* json_dumps.h: JSON as text. If memory runs out, jansson's json_dumps may leave a name out without
 * an error. This function counts the bytes first, allocates them, and then writes. */
#ifndef SGT_JSON_DUMPS_H
#define SGT_JSON_DUMPS_H

#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return malloc'd text, as json_dumps does. Return NULL if json is NULL, if it holds a value that
 * JSON cannot express, or if memory runs out. */
char *sgt_json_dumps(const json_t *json, size_t flags);

#ifdef __cplusplus
}
#endif
#endif
