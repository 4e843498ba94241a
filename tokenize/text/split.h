/* split.h: GPT-2's split rule, without a regular expression:
 *
 *     '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 *     sgt_splitter sp = sgt_splitter_start(text, n);
 *     uint32_t ends[256];
 *     size_t from = 0, count;
 *     for (; (count = sgt_split(&sp, ends, 256)) > 0; from = sp.at)
 *         for (size_t i = 0; i < count; i++) use(text + from + (i ? ends[i - 1] : 0), text + from + ends[i]);
 *
 * Classes are unicode.h's. Text is any bytes: each ill-formed unit (utf8.h) counts as one character
 * that is neither letter, number nor white space, as U+FFFD is, and its bytes are kept. So the
 * pieces of ill-formed text are those of its replaced twin, and pieces laid end to end are always
 * the text. One pass, no look-behind, at most three bytes and one run of white space looked ahead:
 * linear. */
#ifndef SGT_SPLIT_H
#define SGT_SPLIT_H

#include <stddef.h>
#include <stdint.h>

#include "cuts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What vectors carry from one block of 64 bytes to the next. */
typedef struct sgt_split_carry {
    uint64_t low, high, blank; /* the block before: the bits of its classes (sgt_class), U+0020 */
    uint64_t clear, set;       /* the next block: what a contraction did to its pieces' starts */
} sgt_split_carry;

/* Where a splitter stands. Memory only: there is nothing to free, and a copy goes on by itself. */
typedef struct sgt_splitter {
    const uint8_t *text;
    size_t n;
    size_t at; /* where the next piece starts */
    /* NULL, as it starts; else pieces are handed out in parts, cut wherever they may be */
    const sgt_cuts *cuts;

    /* The rest is split.c's, which takes 64 bytes at a time. */
    size_t (*split)(struct sgt_splitter *s, uint32_t *ends, size_t max);
    /* without vectors: of the piece that parts are made of */
    size_t end;
    size_t block; /* offset of the block to look at next */
    /* pieces of the block before that were not handed out yet */
    uint64_t starts;
    sgt_split_carry carry;
    /* classes of a character that goes on in the next block */
    uint64_t in[2];
} sgt_splitter;

/* Starts on text[0..n), which must stay as it is until the last piece. No byte outside of it is
 * read. */
sgt_splitter sgt_splitter_start(const void *text, size_t n);

/* The next pieces: ends[i] is where piece i ends, counted from the first one's beginning, which is
 * s->at before the call; after it s->at is where the last one ends. Returns how many, at most `max`
 * (>= 1), perhaps fewer; 0 at the end of the text. ends[] may be written to up to `max`, whatever
 * is returned. Vectors fill it 64 pieces at most at a time, so ask for 64 more than are worth a
 * call. A piece of UINT32_MAX bytes or more comes alone, as UINT32_MAX: s->at says where it
 * ends. */
size_t sgt_split(sgt_splitter *s, uint32_t *ends, size_t max);

/* A safe cut: a place p, 0 < p < n, as near to n as one is known, where the tokens of all that
 * stands before p, followed by the tokens of all from p on, are the tokens of the whole, and
 * likewise for the count of ill-formed units. That holds whatever follows these n bytes, and
 * whatever came before them if they start at a safe cut themselves. 0 where there is none (white
 * space or one letter all along): look at a longer block. Looks backwards from n. joins: the byte
 * pairs that occur inside tokens (sgt_vocab_joins). With them cuts go through words as well,
 * between bytes that no token holds side by side, so that text without spaces (Chinese, Thai) can
 * be cut too. NULL: without. */
size_t sgt_split_cut(const void *text, size_t n, const uint64_t *joins);

/* Whether a cut before s[p], 0 < p < n, in the midst of a piece, falls between characters that
 * belong to it, and leaves two pieces in its place and all others as they are: whether it is safe
 * is then up to the piece's tokens (bpe/extent.h). 0 also where not enough of s[n] is in sight to
 * say. */
int sgt_split_within(const uint8_t *s, size_t n, size_t p);

#ifdef __cplusplus
}
#endif
#endif
