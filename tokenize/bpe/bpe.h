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
 *   Let a piece start at offset f and end at offset t or later. Let b be an offset between f and t,
 *   and let M be the length in bytes of the longest token. Wherever the piece ends, one of its
 *   tokens ends at an offset a with t-M+1 <= a <= t, because no token is longer than M. The tokens
 *   of the piece before a are the encoding of the bytes from f to a (pieces.c: every two adjacent
 *   tokens "fit", and tokens that fit are the encoding of their joined bytes). If, for each of
 *   these M offsets a, the encoding of the bytes from f to a has a border at b, the encoding of the
 *   complete piece has a border at b as well.
 *
 *   The encoding of the bytes from f to a has a border at b if and only if two tokens fit next to
 *   each other: the last token of the bytes from f to b, and the first token of the bytes from b to
 *   a. Checking this takes one look-up, and few different first tokens occur for the M offsets a.
 *
 * If b passes the check, the piece can be cut at b: the ids of the bytes before b and the ids of
 * the bytes after b, joined, are the ids of the piece, because all adjacent tokens fit. */

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
