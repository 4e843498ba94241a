/* megatron.h: Megatron-LM's PREFIX.bin and PREFIX.idx. The .bin holds only ids. The .idx says where
 * sequences and documents are in it:
 *
 *   byte 0   "MMIDIDX\0\0"            byte 26  D + 1, for D documents
 *   byte 9   1 (u64)                  byte 34  tokens of each sequence (S int32)
 *   byte 17  type: 8 uint16, 3 int16,         byte where each begins in the .bin (S int64)
 *            4 int32
 *   byte 18  S sequences (u64)                first sequence of each document, and S (D + 1 int64)
 *
 * A column of one byte per sequence may follow (modes of multimodal sets); it is ignored. Sequences
 * lie one after the other and fill the .bin, so the .bin can be read as a shard without a header.
 * The whole .idx is checked. */
#ifndef SGT_MEGATRON_H
#define SGT_MEGATRON_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return the bytes of an id, 2 or 4, if a file that begins like an .idx of Megatron-LM lies beside
 * the shard "x.bin"; else 0. If its type is of another width, the result is 2. Return a negative
 * SGT_E* if it cannot be opened, or is an index of older versions. */
int sgt_megatron_beside(const char *shard, sgt_error *err);

/* Write "x.bin" to `shard`, and return it, if `path` is "x" or "x.idx" and x.idx begins like an
 * .idx of Megatron-LM; else return NULL. */
char *sgt_megatron_shard(char shard[SGT_PATH], const char *path);

/* Read the whole .idx beside `shard`, which has `tokens` tokens. *starts, malloc'd, has the first token
 * of each document that has one, in ascending order; *hash is that of the .idx. SGT_EFORMAT names the
 * .idx and the offset of an impossible entry. */
int sgt_megatron_read(uint64_t **starts, size_t *count, uint64_t *hash, const char *shard,
                      uint64_t tokens, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
