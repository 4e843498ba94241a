/* bpe.h: internal interface that encodes one piece of text; users call sgt_encode instead. A piece
 * (also called pre-token) is a section of text that the split rule cuts out. A piece may hold any
 * bytes.
 *
 * Each function writes the token ids of the piece to the caller's array `ids`, and returns the
 * number of ids. All functions give the same ids. A piece never has more ids than bytes, so `ids`
 * needs room for one id per byte. The ids are numbered in merge order, that is, in the order in
 * which the merges create the tokens. This order may differ from the vocabulary's public ids. */
#ifndef SGT_BPE_H
#define SGT_BPE_H

#include "tokenize/vocab/vocab.h"

/* Maximum length in bytes of a piece (pre-token) that sgt_bpe_scan_16 and sgt_bpe_scan_32 accept.
 * Their time is quadratic in the length. Longer pieces are encoded in linear time (section "steps"
 * in pieces.c). Short pieces are not encoded in that way, because it needs a trie of the tokens,
 * which takes long to build. */
#define SGT_BPE_SCAN_MAX 256

/* Encode the n bytes at s, a piece of at most SGT_BPE_SCAN_MAX bytes, into ids of 16 or 32 bits.
 * The functions apply the definition of BPE (see bpe.c) step by step, so the time is quadratic in
 * n. */
size_t sgt_bpe_scan_16(const sgt_vocab *v, const uint8_t *s, size_t n, void *ids);
size_t sgt_bpe_scan_32(const sgt_vocab *v, const uint8_t *s, size_t n, void *ids);

/* ---- cuts inside a long piece ----
 *
 * A cut is an offset at which a text can be divided without changing its ids. sgt_extent_cut finds
 * a cut inside a piece (pre-token) of a megabyte or more, such as a long run of zero bytes, of one
 * letter, of spaces or of random letters, in which sgt_rule_cut finds no cut. With such cuts, an
 * input never has to be in memory as a whole.
 *
 * Where a token ends may depend on the text after the token, but only on a limited amount of it.
 * (M. Berglund, B. van der Merwe, "Formalizing BPE Tokenization", 2023, show that the vocabulary
 * bounds the look-ahead.) This code does not compute the bound. Instead, it tries borders between
 * tokens, and accepts a border as a cut only if the condition of this proof holds for the border:
 *
 *   Let a piece start at f and reach at least to t. Let b be an offset between f and t, and M the
 *   number of bytes of the longest token. Wherever the piece ends, one of its tokens ends at an
 *   offset a in t-M+1 ... t, since no token is longer than M. The tokens before a are those of
 *   f ... a encoded alone (pieces.c: adjacent tokens fit, so they are the encoding of their bytes).
 *   If, for each of these M offsets a, the tokens of f ... a have a border at b, then the tokens of
 *   the whole piece have a border at b.
 *
 *   The tokens of f ... a have a border at b if and only if the last token of f ... b and the first
 *   token of b ... a fit next to each other. This takes one look-up, and the M offsets have only a
 *   few different first tokens.
 *
 * The tokens of the two parts, joined, are then those of the whole piece, because a sequence of
 * tokens that fit is the encoding of its bytes. */

/* maximum length in bytes of a vocabulary's longest token for which sgt_extent_cut searches for a
 * cut; if the vocabulary has a longer token, sgt_extent_cut returns 0 (no cut found) */
#define SGT_EXTENT_TOKEN 1024

/* Find a safe cut (an offset at which the text can be divided without changing its ids) inside the
 * longest piece of the n bytes at `text`. Return the offset of the cut from `text`, or 0 if no cut
 * was found. `text` must point to the beginning of a text or to a safe cut. The vocabulary must
 * have a split rule of split.h, such as GPT-2's, not a PCRE2 pattern. The call takes about as long
 * as encoding the text. Only one thread at a time may use an encoder. */
size_t sgt_extent_cut(sgt_encoder *e, const uint8_t *text, size_t n);

#endif
