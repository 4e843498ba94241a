/* sums.h: checksums of a checkpoint: XXH3-64 (xxhash.com) of every file, kept in its state.json:
 *
 *     "files": {"model.safetensors": {"bytes": 1234, "xxh3": "0123456789abcdef"}, ...},
 *     "xxh3": "..."
 *
 * The last one is that of the object itself without this member, as jansson writes it compactly. So
 * a flipped bit is found anywhere. */
#ifndef SGT_SUMS_H
#define SGT_SUMS_H

#include <jansson.h>
#include <stdint.h>

#include "loader/base/error.h"

/* Add a checksum to the object `files`; add_file reads dir/name to compute it. */
int sgt_sums_add(json_t *files, const char *name, uint64_t bytes, uint64_t xxh3, sgt_error *err);
int sgt_sums_add_file(json_t *files, const char *dir, const char *name, sgt_error *err);

/* Check that the files in the folder are those that were written. SGT_EFORMAT names a file that is
 * missing or differs. `files` may be NULL (an older checkpoint). */
int sgt_sums_check(const json_t *files, const char *dir, sgt_error *err);

/* Add the checksum of the object to itself, or verify it; an object without one is accepted. */
int sgt_sums_seal(json_t *state, sgt_error *err);
int sgt_sums_check_seal(json_t *state, const char *path, sgt_error *err);

#endif
