/* json_dumps.h: JSON as text. jansson's json_dumps does not see when memory runs out while it
 * writes a name, and leaves the name out; written into memory that is there, nothing can be
 * lost. */
#ifndef SGT_JSON_DUMPS_H
#define SGT_JSON_DUMPS_H

#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What json_dumps promises: malloc'd text; NULL where json is NULL, holds what JSON cannot, or
 * memory is out. */
char *sgt_json_dumps(const json_t *json, size_t flags);

#ifdef __cplusplus
}
#endif
#endif
