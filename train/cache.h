/* cache.h: reads and writes the JSON files in the cache folder. Each file contains one JSON object
 * with the results of measurements or checks on this machine. Users can delete the files at any
 * time. */
#ifndef SGT_CACHE_H
#define SGT_CACHE_H

#include <jansson.h>

#include "loader/base/error.h"

/* Return the JSON object in the file FOLDER/NAME, or an empty object if the file cannot be read.
 * The caller must release the object with json_decref. */
json_t *sgt_cache_read(const char *folder, const char *name);

/* Set `key` to `value` in the JSON object in the file FOLDER/NAME, replacing the file atomically.
 * The folder must exist. If the object already has the maximum number of keys, remove all of them
 * first. This function takes ownership of `value`; if `value` is NULL, it returns an out-of-memory
 * error. */
int sgt_cache_write(const char *folder, const char *name, const char *key, json_t *value,
                    sgt_error *err);

#endif
