/* utf8_levels.h: skips well-formed text fast, for utf8.c. */
#ifndef SGT_UTF8_LEVELS_H
#define SGT_UTF8_LEVELS_H

#include <stddef.h>
#include <stdint.h>

/* Return an offset, `at` or larger, up to which s is well formed. The caller guarantees that
 * s[0..at) is well formed and 3 <= at <= n. Stops before a block of 64 bytes that holds an
 * ill-formed unit, or when fewer than 64 bytes are left. x86-64 only. */
size_t sgt_utf8_skip_avx2(const uint8_t *s, size_t at, size_t n);

#endif
