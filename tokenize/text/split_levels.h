/* split_levels.h: the implementations of sgt_split, for split.c and tests. All give the same
 * pieces. */
#ifndef SGT_SPLIT_LEVELS_H
#define SGT_SPLIT_LEVELS_H

#include <stdint.h>

#include "tokenize/text/split.h"

/* the definition: one character at a time */
size_t sgt_split_ref(sgt_splitter *s, uint32_t *ends, size_t max);
size_t sgt_split_plain(sgt_splitter *s, uint32_t *ends, size_t max);

/* the other rules of split.h: one character at a time, and by blocks */
size_t sgt_split_rule(sgt_splitter *s, uint32_t *ends, size_t max);
size_t sgt_split_rule_plain(sgt_splitter *s, uint32_t *ends, size_t max);
/* Split one character at a time up to s->hard. From there on, blocks of 64 bytes can be split
 * again. */
size_t sgt_split_rule_hard(sgt_splitter *s, uint32_t *ends, size_t max);
/* Return the length of the contraction at s, or 0; s[0] is a quote. */
size_t sgt_rule_contraction(const uint8_t *s, size_t n);
/* Return whether s begins with white space, and its length in *len. */
int sgt_rule_is_space(const uint8_t *s, size_t n, size_t *len);
#if defined(__x86_64__)
size_t sgt_split_rule_avx2(sgt_splitter *s, uint32_t *ends, size_t max);
/* requires sgt_cpu_vbmi2() */
size_t sgt_split_rule_avx512(sgt_splitter *s, uint32_t *ends, size_t max);
size_t sgt_split_avx2(sgt_splitter *s, uint32_t *ends, size_t max);
size_t sgt_split_avx512(sgt_splitter *s, uint32_t *ends, size_t max); /* requires sgt_cpu_vbmi2() */
#endif

/* ---- words of eight bytes ----
 *
 * Classes of ASCII bytes, eight at a time in a 64-bit word. Results are flags in the
 * top bit of each byte. For split.c and split_plain.c. */

#define WORD_OF(x) ((x) * (uint64_t)0x0101010101010101u)

/* Set the top bit of each byte x >= from. Bytes must be below 0x80, so that no sum carries into the
 * next byte. */
static inline uint64_t word_at_least(uint64_t x, unsigned from) { return x + WORD_OF(0x80 - from); }

static inline uint64_t word_within(uint64_t x, unsigned from, unsigned count)
{
    return word_at_least(x, from) & ~word_at_least(x, from + count);
}

/* Flag the ASCII letters in w. The lower seven bits of each byte of the result mean nothing. */
static inline uint64_t word_letters(uint64_t w)
{
    return word_within((w & WORD_OF(0x7F)) | WORD_OF(0x20), 'a', 26) & ~w;
}

static inline uint64_t word_digits(uint64_t w)
{
    return word_within(w & WORD_OF(0x7F), '0', 10) & ~w;
}

static inline uint64_t word_controls(uint64_t w) /* white space other than U+0020 */
{
    return word_within(w & WORD_OF(0x7F), '\t', 5) & ~w;
}

static inline uint64_t word_equal(uint64_t w, char c)
{
    return ~word_at_least((w & WORD_OF(0x7F)) ^ WORD_OF((unsigned char)c), 1) & ~w;
}

#endif
