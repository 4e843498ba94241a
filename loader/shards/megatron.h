/* megatron.h: Megatron-LM's PREFIX.bin and PREFIX.idx. The .bin holds only ids. The .idx says where
 * sequences and documents are in it:
 *
 *   byte 0   "MMIDIDX\0\0"            byte 26  D + 1, for D documents
 *   byte 9   1 (u64)                  byte 34  tokens of each sequence (S int32)
 *   byte 17  type: 8 uint16, 3 int16          byte where each begins in the .bin (S int64)
 *   byte 18  S sequences (u64)                first sequence of each document, and S (D + 1 int64)
 *
 * A column of one byte per sequence may follow (modes of multimodal sets); it is ignored. Sequences
 * lie one after the other and fill the .bin, so the .bin can be read as a shard without a header.
 * The whole .idx is checked. */
#ifndef SGT_MEGATRON_H
#define SGT_MEGATRON_H

#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return 1 if an .idx of Megatron-LM lies beside the shard "x.bin", else 0. Return a negative
 * SGT_E* if it cannot be read, or if its version or token type, which the message names, is
 * unsupported. */
int sgt_megatron_beside(const char *shard, sgt_error *err);

/* Return malloc'd "x.bin" if `path` is "x" or "x.idx" and x.idx begins like an .idx of Megatron-LM;
 * else NULL. */
char *sgt_megatron_shard(const char *path);

typedef struct sgt_megatron {
    uint64_t sequences, documents; /* documents counts those that have at least one token */
    uint64_t hash;                 /* hash of the .idx */
} sgt_megatron;

/* Read the whole .idx beside `shard`, which has `tokens` tokens. Fills in m unless it is NULL.
 * Calls `start`, unless it is NULL, with the first token of each document, in ascending order,
 * until it returns a negative SGT_E*. SGT_EFORMAT names the .idx and the offset of an impossible
 * entry. */
int sgt_megatron_read(sgt_megatron *m, const char *shard, uint64_t tokens,
                      int (*start)(void *ctx, uint64_t token, sgt_error *err), void *ctx,
                      sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
