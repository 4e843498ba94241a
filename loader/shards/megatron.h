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

/* If there is a file "x.idx" for the shard "x.bin" that begins like an .idx of Megatron-LM, return
 * the bytes of an id: 2 or 4, or 2 if its type has another width. If there is none, return 0.
 * Return a negative SGT_E* if the file cannot be opened, or has the format of older versions. */
int sgt_megatron_beside(const char *shard, sgt_error *err);

/* Write "x.bin" to `shard`, and return it, if `path` is "x" or "x.idx" and x.idx begins like an
 * .idx of Megatron-LM; else return NULL. */
char *sgt_megatron_shard(char shard[SGT_PATH], const char *path);

/* Read and check the whole .idx of `shard`, which has `tokens` tokens. Sets *starts to a malloc'd
 * array of the index of the first token of each document that is not empty, in ascending order, and
 * *hash to the hash of the .idx. The message of SGT_EFORMAT names the .idx and the offset of an
 * impossible entry. */
int sgt_megatron_read(uint64_t **starts, size_t *count, uint64_t *hash, const char *shard,
                      uint64_t tokens, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
