/* paths_cache.h: the file FOLDER/self-check.json, which keeps verdicts of the self-check. Its
 * object has a key for each machine and build (sgt_cuda_checks.identity); the value is an object
 * {path: [verdict, reason], ...}. */
#ifndef SGT_PATHS_CACHE_H
#define SGT_PATHS_CACHE_H

#include "loader/base/error.h"
#include "train/verdicts.h"

/* Lock the folder, after waiting for any process that has locked it. Returns a file descriptor,
 * which the caller closes to release the lock; SGT_ESTOPPED; or another negative SGT_E* if the lock
 * cannot be taken. */
int sgt_paths_lock(const char *folder, const sgt_stop *stop, sgt_error *err);

/* Read the verdicts of `key`. The caller has filled in the names of the paths. Returns 1 if the
 * file has a verdict on each of them; 0 if one is missing or damaged, or if the file cannot be
 * read. */
int sgt_paths_read(sgt_verdicts *v, const char *folder, const char *key);
/* Add or replace the verdicts of `key`; the file is replaced as a whole. */
int sgt_paths_write(const sgt_verdicts *v, const char *folder, const char *key, sgt_error *err);

#endif
