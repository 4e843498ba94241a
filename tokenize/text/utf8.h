/* utf8.h: reads arbitrary bytes as Unicode code points.
 *
 * Text is divided into units. A unit is a well-formed UTF-8 sequence or a maximal ill-formed
 * subpart: the longest start of a well-formed sequence, or else one byte (Unicode 3.9, table 3-8).
 * A standard decoder, such as Python's with errors="replace", writes one U+FFFD for each ill-formed
 * unit. */
#ifndef SGT_UTF8_H
#define SGT_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define SGT_UTF8_ILL_FORMED UINT32_MAX

/* Return the length in bytes of the unit at s, which is a character or an ill-formed sequence. n >=
 * 1 bytes can be read. Set *cp to its code point, or to SGT_UTF8_ILL_FORMED. */
size_t sgt_utf8_unit(const uint8_t *s, size_t n, uint32_t *cp);

/* Return the length in bytes of the unit at p, which is a character or an ill-formed sequence. Set
 * *cp to its code point, or to SGT_UTF8_ILL_FORMED. Four bytes must be readable at p. Unlike
 * sgt_utf8_unit, this function tests for characters of two and three bytes first. */
static inline unsigned sgt_utf8_unit_in_four(const uint8_t *p, uint32_t *cp)
{
    unsigned a = p[0], b = p[1] ^ 0x80u, c = p[2] ^ 0x80u;
    if (a - 0xC2u < 0x1E && b < 0x40) {
        *cp = (a & 0x1F) << 6 | b;
        return 2;
    }
    *cp = (a & 0x0F) << 12 | b << 6 | c;
    if (a >> 4 == 0xE && (b | c) < 0x40 && *cp >= 0x800 && *cp >> 11 != 0xD800 >> 11) return 3;
    return (unsigned)sgt_utf8_unit(p, 4, cp);
}

/* Return the number of ASCII bytes before the first byte of s that is not ASCII. */
size_t sgt_utf8_ascii(const uint8_t *s, size_t n);

/* Return the offset of the first ill-formed unit in the n bytes at s, or n if there is none. */
size_t sgt_utf8_valid(const uint8_t *s, size_t n);

/* Return the number of ill-formed units in the n bytes at s. Store the offsets of the first `max`
 * of them in offsets[], which may be NULL if max is 0. */
size_t sgt_utf8_count_ill_formed(const uint8_t *s, size_t n, uint64_t *offsets, size_t max);

/* Copy the n bytes at s to `out`, with U+FFFD (EF BF BD) in place of each ill-formed unit. `out`
 * must have room for 3n bytes and must not overlap s. Return the number of bytes written. */
size_t sgt_utf8_replace(uint8_t *out, const uint8_t *s, size_t n);

/* Convert offset `to` in the output of sgt_utf8_replace to the corresponding offset in its
 * input s. */
size_t sgt_utf8_replaced_at(const uint8_t *s, size_t n, size_t to);

/* ---- levels ----
 *
 * A vector function for utf8.c that skips well-formed text fast. */

/* Return an offset, `at` or larger, up to which s is well formed. The function stops when fewer
 * than 64 bytes are left, or before a block of 64 bytes that contains an ill-formed unit. The
 * caller guarantees that the first `at` bytes of s are well formed and that 3 <= at <= n. The
 * function exists only on x86-64. */
size_t sgt_utf8_skip_avx2(const uint8_t *s, size_t at, size_t n);

#endif
