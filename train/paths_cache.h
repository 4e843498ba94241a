/* paths_cache.h: verdicts of the self-check in a file: FOLDER/self-check.json, an object by what verdicts hold for, in
 * each an object by path: [verdict, why]. */
#ifndef SGT_PATHS_CACHE_H
#define SGT_PATHS_CACHE_H

#include "base/error.h"
#include "verdicts.h"

/* Waits until nobody else holds the folder's lock, and takes it: to be closed. A negative SGT_E* if it cannot be had;
 * SGT_ESTOPPED. */
int sgt_paths_lock(const char *folder, const sgt_stop *stop, sgt_error *err);

/* 1 if the file has a verdict for each path of *v, whose names are filled in. What cannot be read or is damaged counts
 * as not there. */
int sgt_paths_read(sgt_verdicts *v, const char *folder, const char *key);
/* Adds or replaces what `key` has; the file is replaced as a whole. */
int sgt_paths_write(const sgt_verdicts *v, const char *folder, const char *key, sgt_error *err);

#endif
