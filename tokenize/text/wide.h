/* wide.h: text in memory that is not UTF-8, as UTF-8: the strings of Python, Java and JavaScript.
 * The width of a text is the number of bytes of its units: 1 is Latin-1, 2 is UTF-16 (UCS-2 is the
 * same without surrogates), and 4 is UTF-32, in the machine's byte order.
 *
 * Two surrogates that are a pair are one character, at width 4 too. Any other surrogate and any
 * number above U+10FFFF become U+FFFD, as in tiktoken. */
#ifndef SGT_WIDE_H
#define SGT_WIDE_H

#include <stddef.h>
#include <stdint.h>

#define SGT_WIDE_PAD 80 /* bytes after the UTF-8 that sgt_wide_to_utf8 may write */

/* Write n units as UTF-8 to `out`, and return the number of bytes. `out` has room for 2n bytes at
 * width 1, 3n at width 2 or 4n at width 4, and SGT_WIDE_PAD more. `text` is aligned to its
 * width. */
size_t sgt_wide_to_utf8(uint8_t *out, const void *text, size_t n, size_t width);

/* ---- levels ----
 *
 * The implementations of sgt_wide_to_utf8, for wide.c and tests. */

/* The definition: one character at a time. */
size_t sgt_wide_to_utf8_plain(uint8_t *out, const void *text, size_t n, size_t width);

/* Convert as sgt_wide_to_utf8 does, but stop where fewer than 16 units are left, or before 16 that
 * hold a surrogate or a character above U+FFFF. Set *units to the number of units that were
 * converted, and return the number of bytes. x86-64 only. */
size_t sgt_wide_avx2(uint8_t *out, const void *text, size_t n, size_t width, size_t *units);

#endif
