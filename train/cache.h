/* cache.h: reads and writes the JSON files in the cache folder. Each file holds one object, whose
 * values are results of measurements or checks on this machine. Users may remove the files at any
 * time. */
#ifndef SGT_CACHE_H
#define SGT_CACHE_H

#include <jansson.h>

#include "loader/base/error.h"

/* Return the object in the file FOLDER/NAME, or an empty object if the file cannot be read. The
 * caller releases it with json_decref. */
json_t *sgt_cache_read(const char *folder, const char *name);

/* Set the value of `key` in the file FOLDER/NAME. The folder must exist. The file is replaced
 * atomically. If the file already has the maximum number of keys, all old keys are removed
 * first. The function takes ownership of `value`, and returns an out-of-memory error if `value`
 * is NULL. */
int sgt_cache_write(const char *folder, const char *name, const char *key, json_t *value,
                    sgt_error *err);

#endif
