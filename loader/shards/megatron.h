/* megatron.h: Megatron-LM's PREFIX.bin and PREFIX.idx. The .bin is ids and nothing else; the .idx
 * says where sequences and documents lie in it:
 *
 *   byte 0   "MMIDIDX\0\0"            byte 26  D + 1, for D documents
 *   byte 9   1 (u64)                  byte 34  tokens of each sequence (S int32)
 *   byte 17  type: 8 uint16, 3 int16          byte where each begins in the .bin (S int64)
 *   byte 18  S sequences (u64)                first sequence of each document, and S (D + 1 int64)
 *
 * A byte a sequence may follow (modes of multimodal sets), which is left alone. Sequences lie one
 * after the other and fill the .bin, so that it is a shard without a header like any other. All of
 * it is checked, in little memory. */
#ifndef SGT_MEGATRON_H
#define SGT_MEGATRON_H

#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether an .idx of Megatron's lies beside "x.bin": 1, 0, or a negative SGT_E* (it cannot be read,
 * or is of a version or a type of tokens that is not read here, which the message names). */
int sgt_megatron_beside(const char *shard, sgt_error *err);

/* malloc'd "x.bin" where `path` is "x" or "x.idx" and x.idx begins as Megatron's do; else NULL. */
char *sgt_megatron_shard(const char *path);

typedef struct sgt_megatron {
    uint64_t sequences, documents; /* documents: those that have a token */
    uint64_t hash;                 /* of the .idx */
} sgt_megatron;

/* Reads the .idx beside `shard`, which has `tokens`, to the end: m (NULL is fine) says what it
 * holds, and `start` (NULL is fine) is called with the first token of each document, rising, until
 * it returns a negative SGT_E*. SGT_EFORMAT names the .idx and the offset of what cannot be. */
int sgt_megatron_read(sgt_megatron *m, const char *shard, uint64_t tokens,
                      int (*start)(void *ctx, uint64_t token, sgt_error *err), void *ctx,
                      sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
