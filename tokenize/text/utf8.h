/* utf8.h: reads arbitrary bytes as Unicode code points.
 *
 * Any text is divided into units. A unit is either the UTF-8 encoding of one character, or an
 * ill-formed sequence: the longest incomplete beginning of a character's encoding or, if there is
 * none, a single byte (section 3.9 of the Unicode Standard, table 3-8). A decoder that follows the
 * standard, such as Python's with errors="replace", replaces each ill-formed unit with one
 * U+FFFD. */
#ifndef SGT_UTF8_H
#define SGT_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define SGT_UTF8_ILL_FORMED UINT32_MAX

/* Read the unit (a UTF-8 character, or an ill-formed sequence) at the beginning of the n >= 1 bytes
 * at s. Set *cp to the character's code point, or to SGT_UTF8_ILL_FORMED. Return the length of the
 * unit in bytes. */
size_t sgt_utf8_unit(const uint8_t *s, size_t n, uint32_t *cp);

/* Read the unit (a UTF-8 character, or an ill-formed sequence) at p. Set *cp to the character's
 * code point, or to SGT_UTF8_ILL_FORMED, and return the length of the unit in bytes. Four bytes
 * must be readable at p. The result equals that of sgt_utf8_unit(p, 4, cp), but is faster for
 * characters of two or three bytes. */
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

/* Return the number of bytes in the n bytes at s that come before the first non-ASCII byte; n if
 * there is none. */
size_t sgt_utf8_ascii(const uint8_t *s, size_t n);

/* Return the offset of the first ill-formed sequence in the n bytes at s, or n if all of the text
 * is well-formed UTF-8. */
size_t sgt_utf8_valid(const uint8_t *s, size_t n);

/* Return the number of ill-formed sequences in the n bytes at s. Store the offsets of the first
 * `max` of them in the array `offsets`, which can be NULL if max is 0. */
size_t sgt_utf8_count_ill_formed(const uint8_t *s, size_t n, uint64_t *offsets, size_t max);

/* Copy the n bytes at s to `out`, replacing each ill-formed sequence with U+FFFD (EF BF BD). `out`
 * must have room for 3n bytes and must not overlap the input. Return the number of bytes
 * written. */
size_t sgt_utf8_replace(uint8_t *out, const uint8_t *s, size_t n);

/* Convert an offset `to` in the output of sgt_utf8_replace to the corresponding offset in its
 * input, the n bytes at s. */
size_t sgt_utf8_replaced_at(const uint8_t *s, size_t n, size_t to);

/* ---- levels ----
 *
 * A function for utf8.c that skips well-formed text with vector instructions. */

/* Return an offset, at least `at`, before which s is well-formed UTF-8. The function stops when
 * fewer than 64 bytes are left, or at a block of 64 bytes that contains an ill-formed sequence. The
 * caller guarantees that 3 <= at <= n and that the first `at` bytes of s are well formed. This
 * function exists only on x86-64. */
size_t sgt_utf8_skip_avx2(const uint8_t *s, size_t at, size_t n);

#endif
