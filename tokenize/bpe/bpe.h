/* bpe.h: internal interface that encodes one piece of text; users call sgt_encode. A piece is what
 * the split rule cuts text into (a pre-token). It may hold any bytes.
 *
 * All functions write the same ids to the caller's array `ids`, and return their number. A piece
 * never has more ids than bytes, so `ids` needs room for one id per byte. The ids are in merge
 * order: they are numbered in the order in which the merges create the tokens. */
#ifndef SGT_BPE_H
#define SGT_BPE_H

#include "tokenize/vocab/vocab.h"

/* Maximum length in bytes of a piece that sgt_bpe_scan_* accepts. These functions take quadratic
 * time; longer pieces are encoded in linear time, by "steps" (pieces.c). Short pieces do without
 * steps, because steps need a trie of the tokens, which takes long to build. */
#define SGT_BPE_SCAN_MAX 256

/* Encode a piece of at most SGT_BPE_SCAN_MAX bytes into ids of 16 or 32 bits, by applying the
 * definition of BPE (bpe.c) literally. The time is quadratic in n. */
size_t sgt_bpe_scan_16(const sgt_vocab *v, const uint8_t *s, size_t n, void *ids);
size_t sgt_bpe_scan_32(const sgt_vocab *v, const uint8_t *s, size_t n, void *ids);

/* ---- cuts inside a long piece ----
 *
 * sgt_extent_cut finds a safe cut inside a piece of a megabyte or more, where sgt_rule_cut finds
 * none: zero bytes, one letter repeated, spaces, random letters. With such cuts, an input never has
 * to be in memory as a whole.
 *
 * The end of a token may depend on the text after it, but not on text far away. The reason: a merge
 * can affect another merge only if it happens first, and of equal merges, the leftmost happens
 * first. (M. Berglund, B. van der Merwe, "Formalizing BPE Tokenization", 2023, show that the
 * vocabulary bounds the look-ahead.) This code does not compute the bound. Instead, it tries
 * borders between tokens, and accepts a border only if this proof holds for it:
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

/* maximum token length in bytes: with a longer token in the vocabulary, sgt_extent_cut returns 0
 * (no cut found) */
#define SGT_EXTENT_TOKEN 1024

/* Find a safe cut (see sgt_rule_cut) inside the longest piece of the n bytes at `text`. Return its
 * offset, or 0 if none was found. `text` must start at the beginning of a text or at a safe cut.
 * The vocabulary must have one of the rules of split.h, such as GPT-2's. The call takes about as
 * long as encoding the text. Only one thread at a time may use an encoder. */
size_t sgt_extent_cut(sgt_encoder *e, const uint8_t *text, size_t n);

#endif
