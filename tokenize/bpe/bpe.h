/* bpe.h: encodes the bytes of one piece, for the files of tokenize/ and their tests (users call
 * sgt_encode). A piece is a pre-token: what the split rule cuts text into. It may hold any bytes.
 * `ids` has room for n ids of the vocabulary's width. Each call returns the number of ids, and all
 * functions give the same ids, in merge order. */
#ifndef SGT_BPE_H
#define SGT_BPE_H

#include "tokenize/vocab/vocab.h"

/* most bytes that sgt_bpe_scan_* accepts. Longer pieces are encoded uncut, by steps (pieces.c),
 * which is faster for them; it needs a trie that takes longer to build than all other tables of
 * most vocabularies. */
#define SGT_BPE_SCAN_MAX 256

/* Encode a piece of at most SGT_BPE_SCAN_MAX bytes by the definition, in quadratic time, into ids
 * of 16 or 32 bits. */
size_t sgt_bpe_scan_16(const sgt_vocab *v, const uint8_t *s, size_t n, void *ids);
size_t sgt_bpe_scan_32(const sgt_vocab *v, const uint8_t *s, size_t n, void *ids);

/* ---- cuts inside a long piece ----
 *
 * Finds a safe cut in text that is one piece for a megabyte or more, where sgt_rule_cut finds none:
 * zero bytes, one letter repeated, spaces, random letters. So no input ever has to be in memory as
 * a whole.
 *
 * The end of a token may depend on the text after it, but not on text far away: a merge can affect
 * another one only if it happens first, and of equal merges the left one happens first. (M.
 * Berglund, B. van der Merwe, "Formalizing BPE Tokenization", 2023: the vocabulary alone bounds the
 * look-ahead.) The bound is not computed here. Instead, borders between tokens are tried, and a
 * border is accepted only if it is proven:
 *
 *   Let a piece start at f and reach at least to t. Let b be an offset between them, and M the
 *   number of bytes of the longest token. Wherever the piece ends, one of its tokens ends at an
 *   offset a in t-M+1 ... t, since no token is longer than M. The tokens before a are those of f
 *   ... a encoded alone (pieces.c: adjacent tokens fit, so they are what the merges make of their
 *   bytes). If, for each of these M offsets a, the tokens of f ... a have a border at b, then so
 *   have the tokens of the whole piece.
 *
 *   The tokens of f ... a have a border at b exactly if the last token of f ... b and the first
 *   token of b ... a fit next to each other. That is one look-up, and the M offsets have only a few
 *   different first tokens.
 *
 * The tokens of the two parts, joined, are then those of the whole piece, because a row of tokens
 * that fit is what the merges make of its bytes. */

/* most bytes of a token; if a vocabulary has a longer token, sgt_extent_cut makes no cut */
#define SGT_EXTENT_TOKEN 1024

/* Return the offset of a safe cut (see sgt_rule_cut) in the longest piece of text[n], or 0 if none
 * was found. text must start at the beginning of a text or at a safe cut. The call takes about as
 * long as encoding the text. The encoder's vocabulary must have GPT-2's rule or another one of
 * split.h. Only one thread at a time may use an encoder. */
size_t sgt_extent_cut(sgt_encoder *e, const uint8_t *text, size_t n);

#endif
