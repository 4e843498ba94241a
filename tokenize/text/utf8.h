/* utf8.h: bytes as code points, where any bytes at all are allowed.
 *
 * Text is cut into units: a well-formed UTF-8 sequence is one, and so is each maximal ill-formed
 * subpart (Unicode 3.9, table 3-8: the longest start of a well-formed sequence, or else one byte).
 * There are exactly as many ill-formed units as a decoder that follows the standard, Python's
 * errors="replace" among them, writes U+FFFD. */
#ifndef SGT_UTF8_H
#define SGT_UTF8_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SGT_UTF8_ILL_FORMED UINT32_MAX

/* The length of the unit at s (n >= 1 bytes are left), its code point in *cp, or
 * SGT_UTF8_ILL_FORMED there. */
size_t sgt_utf8_unit(const uint8_t *s, size_t n, uint32_t *cp);

/* How many bytes from s on are well formed: n, or the offset of the first ill-formed unit. */
size_t sgt_utf8_valid(const uint8_t *s, size_t n);

/* How many ill-formed units there are; the offsets of the first `max` go to offsets[] (NULL is fine
 * where max is 0). */
size_t sgt_utf8_count_ill_formed(const uint8_t *s, size_t n, uint64_t *offsets, size_t max);

/* Copies s to out (room for 3n, apart from s), each ill-formed unit as U+FFFD (EF BF BD); returns
 * the bytes written. */
size_t sgt_utf8_replace(uint8_t *out, const uint8_t *s, size_t n);

#ifdef __cplusplus
}
#endif
#endif
