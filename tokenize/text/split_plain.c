/* split_plain.c: implements sgt_split, which splits text into pre-tokens, in plain C, for any
 * 64-bit CPU. The code classifies eight bytes at a time in a 64-bit word. The result has a flag in
 * the top bit of each byte. */
#include "tokenize/text/split_blocks.h"
#include "tokenize/text/utf8.h"

/* Return the top bits of the eight bytes of w: bit i of the result is the top bit of byte i. The
 * multiplication moves these eight bits to adjacent positions in the top byte of the product. */
SPLIT_INLINE uint64_t top_bits(uint64_t w)
{
    return ((w >> 7) & WORD_OF(1)) * 0x0102040810204080u >> 56;
}

/* Implement split_level.classify_wide: classify the non-ASCII characters one at a time. The class
 * bits of bytes at the start of the block that belong to a character of the previous block come
 * from in[], because such bytes look ill-formed here. */
static void classify_wide(const uint8_t *p, uint64_t in[2], split_block *b)
{
    uint64_t low = in[0], high = in[1], left = b->wide;
    in[0] = in[1] = 0;
    while (left) {
        unsigned at = (unsigned)__builtin_ctzll(left);
        uint32_t cp;
        unsigned len = sgt_utf8_unit_in_four(p + at, &cp);
        uint64_t bytes = ((uint64_t)1 << len) - 1;
        sgt_class class = sgt_unicode_class(cp);
        uint64_t class_low = class & 1 ? bytes : 0, class_high = class & 2 ? bytes : 0;
        low |= class_low << at;
        high |= class_high << at;
        b->wide_space |= (uint64_t)(class == SGT_CLASS_SPACE) << at;
        if (at + len > 64) {
            in[0] = class_low >> (64 - at);
            in[1] = class_high >> (64 - at);
        }
        left &= ~(bytes << at);
    }
    b->low |= low;
    b->high |= high;
}

SPLIT_INLINE void classify(const uint8_t *p, split_block *b)
{
    uint64_t letter = 0, number = 0, space = 0;
    for (unsigned i = 0; i < 64; i += 8) {
        uint64_t w;
        memcpy(&w, p + i, sizeof w);
        letter |= top_bits(word_letters(w)) << i;
        number |= top_bits(word_ascii(w, '0', 10)) << i;
        space |= top_bits(word_ascii(w, '\t', 5)) << i;
        b->blank |= top_bits(word_equal(w, ' ')) << i;
        b->quote |= top_bits(word_equal(w, '\'')) << i;
        b->wide |= top_bits(w) << i;
    }
    b->narrow_space = space | b->blank;
    b->low = letter | b->narrow_space;
    b->high = number | b->narrow_space;
}

SPLIT_INLINE void contractions(const uint8_t *p, uint64_t quotes, uint64_t *two, uint64_t *three)
{
    *two = *three = 0;
    for (; quotes; quotes &= quotes - 1) {
        const uint8_t *q = p + __builtin_ctzll(quotes);
        if (q[1] == 's' || q[1] == 't' || q[1] == 'd' || q[1] == 'm') *two |= quotes & -quotes;
        else if ((q[1] == 'l' && q[2] == 'l') || ((q[1] == 'v' || q[1] == 'r') && q[2] == 'e'))
            *three |= quotes & -quotes;
    }
}

SPLIT_INLINE uint64_t equal_bytes(const uint8_t *p, char x)
{
    uint64_t mask = 0, w;
    for (unsigned i = 0; i < 64; i += 8) {
        memcpy(&w, p + i, sizeof w);
        mask |= top_bits(word_equal(w, x)) << i;
    }
    return mask;
}

SPLIT_INLINE uint64_t upper(const uint8_t *p)
{
    uint64_t mask = 0, w;
    for (unsigned i = 0; i < 64; i += 8) {
        memcpy(&w, p + i, sizeof w);
        mask |= top_bits(word_ascii(w, 'A', 26)) << i;
    }
    return mask;
}

SPLIT_LEVEL(sgt_split_plain, classify, split_flatten, split_cut_bytes)
