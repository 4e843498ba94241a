/* utf8_levels.h: for utf8.c: passing over well-formed text fast. */
#ifndef SGT_UTF8_LEVELS_H
#define SGT_UTF8_LEVELS_H

#include <stddef.h>
#include <stdint.h>

/* s[0..at) is well formed, and 3 <= at <= n. Returns the end of a longer well-formed beginning, or
 * `at`: it stops before a block of 64 bytes that holds something ill-formed, and where fewer are
 * left. x86-64 only. */
size_t sgt_utf8_skip_avx2(const uint8_t *s, size_t at, size_t n);

#endif
