/* bpe.h: encodes the bytes of one piece, for the files of tokenize/ and their tests (users have
 * sgt_encode). A piece may hold any bytes, and ids must have room for n. Each call returns the
 * number of ids, and all functions give the same ids. */
#ifndef SGT_BPE_H
#define SGT_BPE_H

#include "tokenize/vocab/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

/* most bytes that sgt_bpe_scan takes; at about this length the other ways are as fast */
#define SGT_BPE_SCAN_MAX 64

/* the fastest way for this n */
size_t sgt_encode_piece(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids);
/* the definition, in quadratic time */
size_t sgt_bpe_scan(const sgt_vocab *v, const uint8_t *s, size_t n, uint16_t *ids);
/* linear time, by steps (runs.h) */
size_t sgt_bpe_steps(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids);
/* linear time, by windows and steps, and faster (runs.h) */
size_t sgt_bpe_runs(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids);

#ifdef __cplusplus
}
#endif
#endif
