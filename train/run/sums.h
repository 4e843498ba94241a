/* sums.h: checksums of a checkpoint: XXH3-64 (xxhash.com) of every file, kept in its state.json:
 *
 *     "files": {"model.safetensors": {"bytes": 1234, "xxh3": "0123456789abcdef"}, ...},
 *     "xxh3": "..."
 *
 * The last checksum is that of state.json's object without this member, in jansson's compact form.
 * So a flipped bit in any file is found. */
#ifndef SGT_SUMS_H
#define SGT_SUMS_H

#include <jansson.h>
#include <stdint.h>

#include "loader/base/error.h"

/* Add a checksum to the object `files`. sgt_sums_add_file computes it from dir/name. */
int sgt_sums_add(json_t *files, const char *name, uint64_t bytes, uint64_t xxh3, sgt_error *err);
int sgt_sums_add_file(json_t *files, const char *dir, const char *name, sgt_error *err);

/* Check that the files in the folder are those that were written. Returns SGT_EFORMAT, with its
 * name, if a file is missing or differs. `files` may be NULL, for an older checkpoint. */
int sgt_sums_check(const json_t *files, const char *dir, sgt_error *err);

/* sgt_sums_seal adds the checksum of the object to the object. sgt_sums_check_seal verifies it; an
 * object without one is accepted. */
int sgt_sums_seal(json_t *state, sgt_error *err);
int sgt_sums_check_seal(json_t *state, const char *path, sgt_error *err);

#endif
