/* extent.h: a safe cut through text that is one piece for a megabyte and more (zero bytes, one
 * letter, spaces, random letters), where sgt_split_cut knows none. So no input has to be in memory
 * whole, whatever is in it.
 *
 * Where a token ends may depend on what follows, but not from afar: a merge reaches over another
 * only if it goes before it, and of equal merges the left one does. (M. Berglund, B. van der Merwe,
 * "Formalizing BPE Tokenization", 2023: how far to look ahead is bounded by the vocabulary alone.)
 * How far here is not worked out but tried, and what is found is proven:
 *
 *   Let a piece start at f and go on at least to t, b a place between, and M the bytes of the longest token. Whatever
 *   the piece's end, one of its tokens ends at some place a of t-M+1 ... t, since none is longer than M. The tokens as
 *   far as a are those of f ... a (runs.h: neighbours fit, so they are what the merges make of their bytes). If for
 *   each of these M places the tokens of f ... a have a border at b, then those of the whole piece have it.
 *   And the tokens of f ... a have a border at b exactly where the last token T of f ... b and the first token of
 *   b ... a fit beside each other: one look, and for all the places but few different first tokens.
 *
 * The tokens of the two parts are then those of the whole: tokens in a row are what the merges make
 * of their bytes. */
#ifndef SGT_EXTENT_H
#define SGT_EXTENT_H

#include "bpe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* bytes of a vocabulary's longest token, at most: longer ones are not cut by */
#define SGT_EXTENT_TOKEN 1024

/* A safe cut of text[n], as sgt_split_cut has it, in the longest of its pieces; 0: none was found.
 * The text starts as a text does or at a safe cut. Takes about as long as to encode it. e: an
 * encoder of v, which has no rule of its own. One thread at a time for an encoder. */
size_t sgt_extent_cut(sgt_encoder *e, const sgt_vocab *v, const uint8_t *text, size_t n);

#ifdef __cplusplus
}
#endif
#endif
