/* utf8.h: bytes as code points; any bytes are allowed.
 *
 * Text is divided into units. A well-formed UTF-8 sequence is one unit, and so is each maximal
 * ill-formed subpart (Unicode 3.9, table 3-8: the longest start of a well-formed sequence, or else
 * one byte). The number of ill-formed units is the number of U+FFFD that a standard decoder writes,
 * such as Python's with errors="replace". */
#ifndef SGT_UTF8_H
#define SGT_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define SGT_UTF8_ILL_FORMED UINT32_MAX

/* Return the length of the unit at s, where n >= 1 bytes are left. Set *cp to its code point, or to
 * SGT_UTF8_ILL_FORMED. */
size_t sgt_utf8_unit(const uint8_t *s, size_t n, uint32_t *cp);

/* Do the same as sgt_utf8_unit; four bytes must be readable at p. Characters of two and three bytes
 * are tested first. */
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

/* Return the number of ASCII bytes at the beginning of s. */
size_t sgt_utf8_ascii(const uint8_t *s, size_t n);

/* Return the length of the well-formed beginning of s: n, or the offset of the first ill-formed
 * unit. */
size_t sgt_utf8_valid(const uint8_t *s, size_t n);

/* Return the number of ill-formed units, and store the offsets of the first `max` of them in
 * offsets[], which may be NULL if max is 0. */
size_t sgt_utf8_count_ill_formed(const uint8_t *s, size_t n, uint64_t *offsets, size_t max);

/* Copy s to out, with U+FFFD (EF BF BD) for each ill-formed unit. out has room for 3n bytes and
 * does not overlap s. Returns the number of bytes written. */
size_t sgt_utf8_replace(uint8_t *out, const uint8_t *s, size_t n);

/* Return the offset in s that corresponds to offset `to` in the output of sgt_utf8_replace for
 * s. */
size_t sgt_utf8_replaced_at(const uint8_t *s, size_t n, size_t to);

/* ---- levels ----
 *
 * A function that skips well-formed text fast, for utf8.c. */

/* Return an offset, `at` or larger, up to which s is well formed. The caller guarantees that
 * s[0..at) is well formed and that 3 <= at <= n. The function stops before a block of 64 bytes that
 * holds an ill-formed unit, or when fewer than 64 bytes are left. x86-64 only. */
size_t sgt_utf8_skip_avx2(const uint8_t *s, size_t at, size_t n);

#endif
