/* bpe.h: encodes the bytes of one piece, for the files of tokenize/ and their tests (users have
 * sgt_encode). A piece may hold any bytes, and ids must have room for n. Each call returns the
 * number of ids, and all functions give the same ids. */
#ifndef SGT_BPE_H
#define SGT_BPE_H

#include "tokenize/vocab/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

/* most bytes that sgt_bpe_scan takes; longer pieces are encoded faster by the other functions */
#define SGT_BPE_SCAN_MAX 64

/* Encode a piece by the fastest method for its length. */
size_t sgt_encode_piece(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids);
/* Encode a piece of at most SGT_BPE_SCAN_MAX bytes by the definition, in quadratic time. */
size_t sgt_bpe_scan(const sgt_vocab *v, const uint8_t *s, size_t n, uint16_t *ids);
/* Encode a piece in linear time by steps (runs.h). */
size_t sgt_bpe_steps(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids);
/* Encode a piece in linear time by windows and steps (runs.h), faster than by steps alone. */
size_t sgt_bpe_runs(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids);

#ifdef __cplusplus
}
#endif
#endif
