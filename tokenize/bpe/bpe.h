/* bpe.h: one piece's bytes to ids, for the files of tokenize/ and their tests (users have
 * sgt_encode). Any bytes at all; ids must have room for n; each call returns how many there are.
 * All give the same ids. */
#ifndef SGT_BPE_H
#define SGT_BPE_H

#include "vocab/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

/* bytes that sgt_bpe_scan takes at most; about there the other way is as fast */
#define SGT_BPE_SCAN_MAX 64

/* the fastest way for n */
size_t sgt_encode_piece(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids);
/* the definition: quadratic */
size_t sgt_bpe_scan(const sgt_vocab *v, const uint8_t *s, size_t n, uint16_t *ids);
/* runs.h: linear */
size_t sgt_bpe_steps(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids);
/* runs.h: linear, and faster */
size_t sgt_bpe_runs(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids);

#ifdef __cplusplus
}
#endif
#endif
