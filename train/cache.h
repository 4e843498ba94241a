/* cache.h: files of the cache folder, FOLDER/NAME.json, each an object of what was found out about
 * this machine. They may be removed at any time. */
#ifndef SGT_CACHE_H
#define SGT_CACHE_H

#include <jansson.h>

#include "loader/base/error.h"

/* Return the object in FOLDER/NAME, or an empty one if the file cannot be read. The caller frees
 * it. */
json_t *sgt_cache_read(const char *folder, const char *name);

/* Add or replace the value of `key`; the file is replaced as a whole, and is emptied before if it
 * has many keys. The folder exists. Takes the reference to `value`, which may be NULL: out of
 * memory. */
int sgt_cache_write(const char *folder, const char *name, const char *key, json_t *value,
                    sgt_error *err);

#endif
