/* sums.h: a checkpoint's checksums, XXH3-64 (xxhash.com) of every file's bytes, kept in its
 * state.json:
 *
 *     "files": {"model.safetensors": {"bytes": 1234, "xxh3": "0123456789abcdef"}, ...}, "xxh3": "..."
 *
 * The last one is of the object itself without it, as jansson writes it compactly: a flipped bit
 * anywhere is found. */
#ifndef SGT_SUMS_H
#define SGT_SUMS_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

/* Into the object `files`; add_file reads dir/name. */
int sgt_sums_add(json_t *files, const char *name, uint64_t bytes, uint64_t xxh3, sgt_error *err);
int sgt_sums_add_file(json_t *files, const char *dir, const char *name, sgt_error *err);

/* Whether the folder's files are those that were written. One that is missing or differs is
 * SGT_EFORMAT, named; NULL (an older checkpoint's) is fine. */
int sgt_sums_check(const json_t *files, const char *dir, sgt_error *err);

/* Puts the object's own sum into it, and compares it; an object without one is fine. */
int sgt_sums_seal(json_t *state, sgt_error *err);
int sgt_sums_check_seal(json_t *state, const char *path, sgt_error *err);

#endif
