/* megatron.h: read the files PREFIX.bin and PREFIX.idx of Megatron-LM. The .bin file contains only
 * ids. The .idx file states where sequences and documents begin:
 *
 *   byte 0   "MMIDIDX\0\0"            byte 26  D + 1, for D documents
 *   byte 9   1 (u64)                  byte 34  tokens of each sequence (S int32)
 *   byte 17  type: 8 uint16, 3 int16,         byte where each begins in the .bin (S int64)
 *            4 int32
 *   byte 18  S sequences (u64)                first sequence of each document, and S (D + 1 int64)
 *
 * After these, there may be a column with one byte per sequence (the modes of multimodal sets),
 * which is ignored. Sequences must be contiguous and fill the .bin file, so that this file can be
 * read as a shard without a header. The entire .idx file is checked, except for that column. */
#ifndef SGT_MEGATRON_H
#define SGT_MEGATRON_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return the number of bytes per id, 2 or 4, of the shard "x.bin" if there is an "x.idx" that
 * begins like an .idx file of Megatron-LM. Ids of an unsupported type count as 2 bytes. Return 0 if
 * there is no such file. Return a negative SGT_E* if the file cannot be read, or if it has the
 * older format TNTIDX of Megatron-LM. */
int sgt_megatron_beside(const char *shard, sgt_error *err);

/* If `path` is "x" or "x.idx", and x.idx begins like an .idx file of Megatron-LM, write the path
 * "x.bin" to `shard` and return `shard`. Otherwise return NULL. */
char *sgt_megatron_shard(char shard[SGT_PATH], const char *path);

/* Read and check the entire .idx file of `shard`, a shard with `tokens` tokens. Set *starts to a
 * malloc'd array of the first tokens of all documents that are not empty, as indices in the shard,
 * in ascending order. Set *count to the number of these documents, and *hash to the hash of the
 * .idx file. If the file is invalid (SGT_EFORMAT), the message names the file and the offset of the
 * invalid entry. */
int sgt_megatron_read(uint64_t **starts, size_t *count, uint64_t *hash, const char *shard,
                      uint64_t tokens, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
