/* megatron.h: Megatron-LM's PREFIX.bin and PREFIX.idx. The .bin holds only ids. The .idx states
 * where sequences and documents begin:
 *
 *   byte 0   "MMIDIDX\0\0"            byte 26  D + 1, for D documents
 *   byte 9   1 (u64)                  byte 34  tokens of each sequence (S int32)
 *   byte 17  type: 8 uint16, 3 int16,         byte where each begins in the .bin (S int64)
 *            4 int32
 *   byte 18  S sequences (u64)                first sequence of each document, and S (D + 1 int64)
 *
 * A column with one byte per sequence may follow (the modes of multimodal sets); it is ignored.
 * Sequences must be contiguous and fill the .bin, so that the .bin can be read as a shard without a
 * header. All of the .idx is checked. */
#ifndef SGT_MEGATRON_H
#define SGT_MEGATRON_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return 2 or 4, the bytes per id of the shard "x.bin", if there is an "x.idx" that begins like a
 * Megatron-LM .idx file. An unsupported type of ids counts as 2. Return 0 if there is no such file.
 * Return a negative SGT_E* if it cannot be read, or if it has Megatron-LM's older format TNTIDX. */
int sgt_megatron_beside(const char *shard, sgt_error *err);

/* If `path` is "x" or "x.idx", and x.idx begins like an .idx file of Megatron-LM, write "x.bin" to
 * `shard` and return `shard`. Otherwise return NULL. */
char *sgt_megatron_shard(char shard[SGT_PATH], const char *path);

/* Read and check the entire .idx file of `shard`, a shard with `tokens` tokens. Sets *starts to a
 * malloc'd array: the indices of the first tokens of all non-empty documents, in ascending order.
 * Sets *count to their number, and *hash to the hash of the .idx file. The message of SGT_EFORMAT
 * names the .idx file and the offset of the invalid entry. */
int sgt_megatron_read(uint64_t **starts, size_t *count, uint64_t *hash, const char *shard,
                      uint64_t tokens, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
