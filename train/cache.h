/* cache.h: the JSON files in the cache folder. Each is an object with results of measurements or
 * checks on this machine, by key. The files may be removed at any time. */
#ifndef SGT_CACHE_H
#define SGT_CACHE_H

#include <jansson.h>

#include "loader/base/error.h"

/* Return the object in the file FOLDER/NAME, or an empty object if the file cannot be read. The
 * caller releases it with json_decref. */
json_t *sgt_cache_read(const char *folder, const char *name);

/* Set the value of `key` in the file, which is rewritten atomically. If it has many keys already,
 * all are removed first. The folder must exist. Steals the reference to `value`; NULL stands for a
 * value that could not be created because memory ran out. */
int sgt_cache_write(const char *folder, const char *name, const char *key, json_t *value,
                    sgt_error *err);

#endif
