/* split.h: GPT-2's split rule, without a regular expression:
 *
 *     '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 *     sgt_splitter sp = sgt_splitter_start(text, n);
 *     uint32_t ends[256];
 *     size_t from = 0, count;
 *     for (; (count = sgt_split(&sp, ends, 256)) > 0; from = sp.at)
 *         for (size_t i = 0; i < count; i++)
 *             use(text + from + (i ? ends[i - 1] : 0), text + from + ends[i]);
 *
 * Classes are unicode.h's. The text may be any bytes. Each ill-formed unit (utf8.h) counts as one
 * character that is neither letter, number nor white space, as U+FFFD does, and keeps its bytes. So
 * ill-formed text has the same pieces as its copy with U+FFFD in place of each unit. Pieces laid
 * end to end are always the text. The splitter makes one linear pass: it never looks behind, and
 * looks ahead at most three bytes and one run of white space. */
#ifndef SGT_SPLIT_H
#define SGT_SPLIT_H

#include <stddef.h>
#include <stdint.h>

#include "tokenize/text/cuts.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgt_rule sgt_rule; /* a rule other than GPT-2's (rules.h) */

/* State that the vector code carries from one block of 64 bytes to the next. */
typedef struct sgt_split_carry {
    uint64_t low, high, blank; /* previous block: the bits of its classes (sgt_class), U+0020 */
    uint64_t clear, set;       /* next block: piece starts that a contraction removes and adds */
    /* rules of rules.h: a flag each for the previous block's last byte, and how many numbers its
     * last piece has; for these rules `blank` is such a flag too */
    uint64_t takes, blanks, line, other, letter, plain, lower, both, newline, number;
    unsigned digits;
    unsigned over, kind; /* bytes of the next block that continue a character, and its sgt_kind */
    size_t piece;        /* offset at which the last piece starts; parts may start behind it */
} sgt_split_carry;

/* A splitter's position and state. It owns no memory, so nothing is freed, and a copy continues
 * independently. */
typedef struct sgt_splitter {
    const uint8_t *text;
    size_t n;
    size_t at; /* offset at which the next piece starts */
    /* NULL at first; if set, pieces are returned in parts, cut wherever these tables allow */
    const sgt_cuts *cuts;
    const sgt_rule *rule; /* NULL: GPT-2's */

    /* The fields below belong to split.c, which takes 64 bytes at a time. */
    size_t (*split)(struct sgt_splitter *s, uint32_t *ends, size_t max);
    /* end of the piece whose parts are being returned (sgt_split_ref and other rules) */
    size_t end;
    /* rules of rules.h: offset at which the blocks began; offset up to which text is split one
     * character at a time */
    size_t base, hard;
    size_t block; /* offset of the next block to look at */
    /* piece starts in the previous block that were not returned yet */
    uint64_t starts;
    sgt_split_carry carry;
    /* bytes of the next block that continue a character begun in this one: the bits of their
     * classes */
    uint64_t in[2];
} sgt_splitter;

/* Return a splitter at the start of text[0..n). The caller must keep the text unchanged until the
 * last piece. No byte outside of it is read. */
sgt_splitter sgt_splitter_start(const void *text, size_t n);

/* Find the next pieces. ends[i] is the end of piece i, relative to s->at before the call; after it,
 * s->at is the end of the last piece. Returns the number of pieces: 1 to `max` (max >= 1), or 0 at
 * the end of the text. All `max` entries of ends[] may be overwritten, whatever is returned. Vector
 * code fills ends[] by up to 64 pieces at a time, so pass 64 more than make a call worthwhile. A
 * piece of UINT32_MAX bytes or more is returned alone, as UINT32_MAX: s->at tells its end. */
size_t sgt_split(sgt_splitter *s, uint32_t *ends, size_t max);

/* Return a safe cut: an offset p, 0 < p < n, as near to n as one is known. The tokens of the text
 * before p, followed by those of the text from p on, are the tokens of the whole; counts of
 * ill-formed units add up the same way. That holds for any text behind these n bytes, and for any
 * text before them if they start at a safe cut. Returns 0 if no cut is known (all white space, or a
 * run of one letter): call again with a longer block.
 *
 * The search goes backwards from n. joins: byte pairs that occur inside tokens (sgt_vocab_joins),
 * or NULL. With joins, words are also cut between two bytes that no token holds side by side. That
 * allows cuts in text without spaces (Chinese, Thai). */
size_t sgt_split_cut(const void *text, size_t n, const uint64_t *joins);

/* Return whether s[p], 0 < p < n, begins a character in the middle of a piece. A cut there splits
 * that piece in two and leaves all others unchanged; whether it is safe depends on the piece's
 * tokens (bpe/extent.h). Also returns 0 if too little of s[n] follows p to tell. */
int sgt_split_within(const uint8_t *s, size_t n, size_t p);

#ifdef __cplusplus
}
#endif
#endif
