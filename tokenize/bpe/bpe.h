/* bpe.h: encodes the bytes of one piece, for the files of tokenize/ and their tests (users have
 * sgt_encode). A piece may hold any bytes, and ids, of the vocabulary's width, must have room for n.
 * Each call returns the number of ids, and all functions give the same ids, in merge order. */
#ifndef SGT_BPE_H
#define SGT_BPE_H

#include "tokenize/vocab/vocab.h"

/* most bytes that sgt_bpe_scan_* takes; longer pieces are encoded whole, by steps (pieces.c), which is
 * then faster, and needs a trie that takes longer to make than most vocabularies' other tables */
#define SGT_BPE_SCAN_MAX 256

/* Encode a piece of at most SGT_BPE_SCAN_MAX bytes by the definition, in quadratic time: to ids of 16
 * bits, or of 32. */
size_t sgt_bpe_scan_16(const sgt_vocab *v, const uint8_t *s, size_t n, void *ids);
size_t sgt_bpe_scan_32(const sgt_vocab *v, const uint8_t *s, size_t n, void *ids);

/* ---- cuts inside a long piece ----
 *
 * Finds a safe cut in text that is one piece for a megabyte and more, where sgt_rule_cut
 * finds none: zero bytes, one letter, spaces, random letters. So no input has to be in memory
 * whole, whatever it holds.
 *
 * Where a token ends may depend on the text behind it, but not on text far away. A merge can affect
 * another only if it goes first, and of equal merges the left one goes first. (M. Berglund, B. van
 * der Merwe, "Formalizing BPE Tokenization", 2023: the vocabulary alone bounds the look-ahead.) The
 * bound is not computed here. Borders are tried instead, and one that is accepted is proven:
 *
 *   Let a piece start at f and reach at least to t. Let b be a place between them, and M the
 *   number of bytes of the longest token. Wherever the piece ends, one of its tokens ends at some
 *   place a in t-M+1 ... t, since none is longer than M. The tokens up to a are those of f ... a
 *   alone (pieces.c: adjacent tokens fit, so they are what the merges make of their bytes). If for
 *   each of these M places the tokens of f ... a have a border at b, then those of the whole piece
 *   have it too.
 *   The tokens of f ... a have a border at b exactly if the last token of f ... b and the first
 *   token of b ... a fit beside each other. That is one look-up, and the M places have only a few
 *   different first tokens.
 *
 * The tokens of the two parts are then those of the whole, because fitting tokens in a row are what
 * the merges make of their bytes. */

/* most bytes of a token; sgt_extent_cut makes no cut for a vocabulary with longer tokens */
#define SGT_EXTENT_TOKEN 1024

/* Return a safe cut (see sgt_rule_cut) in the longest piece of text[n], or 0 if none was found.
 * The text starts at the beginning of a text or at a safe cut. Takes about as long as encoding the
 * text. The rule of the encoder's vocabulary must be GPT-2's or another one of split.h. Only one
 * thread at a time may use an encoder. */
size_t sgt_extent_cut(sgt_encoder *e, const uint8_t *text, size_t n);

#endif
