/* wide_levels.h: the implementations of sgt_wide_to_utf8, for wide.c and tests. */
#ifndef SGT_WIDE_LEVELS_H
#define SGT_WIDE_LEVELS_H

#include <stddef.h>
#include <stdint.h>

/* The definition: one character that is not ASCII at a time. */
size_t sgt_wide_to_utf8_plain(uint8_t *out, const void *text, size_t n, size_t width);

/* Convert as sgt_wide_to_utf8 does (wide.h), but stop before a block of at most 16 units that holds
 * a surrogate or another character that this level does not know. Set *units to the number of units
 * that were converted, and return the number of bytes. */
typedef size_t sgt_wide_level(uint8_t *out, const void *text, size_t n, size_t width,
                              size_t *units);

sgt_wide_level sgt_wide_avx2;   /* x86-64 only; stops where fewer than 16 units are left, too */
sgt_wide_level sgt_wide_avx512; /* x86-64 only; requires sgt_cpu_vbmi2() */

/* Convert by one level, and the blocks that it stops before by the definition. */
size_t sgt_wide_by(sgt_wide_level *level, uint8_t *out, const void *text, size_t n, size_t width);

#endif
