/* split_words.h: classes of ASCII bytes, eight at a time in a 64-bit word. Results are flags in the
 * top bit of each byte. For split.c and split_plain.c. */
#ifndef SGT_SPLIT_WORDS_H
#define SGT_SPLIT_WORDS_H

#include <stdint.h>

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
