/* json_dumps.h: JSON as text. If memory runs out, jansson's json_dumps may leave a name out without
 * an error. This function counts the bytes first, allocates them, and then writes. */
#ifndef SGT_JSON_DUMPS_H
#define SGT_JSON_DUMPS_H

#include <jansson.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return malloc'd text, as json_dumps does. Return NULL if json is NULL, if it holds a value that
 * JSON cannot express, or if memory runs out. */
char *sgt_json_dumps(const json_t *json, size_t flags);

/* Return a string of 16 hex digits, or NULL. */
json_t *sgt_json_hex(uint64_t v);

#ifdef __cplusplus
}
#endif
#endif
