/* amx.h: the AMX instructions that products of bfloat16 need. Tests execute them in emulation on CPUs
 * without AMX (tests/kernels/trap).
 *
 *     tile_config();                                    // in each thread
 *     tile_zero(0), tile_load(4, a, 64), tile_load(6, b, 64);
 *     tile_dp(0, 4, 6), tile_store(0, c, 64);
 *     tile_release();
 *
 * There are eight tiles of 16 rows of 64 bytes; a tile's number is a constant. tile_dp(c, a, b)
 * adds a's 16 rows of 32 numbers times b to c (16, 16) in float32. Row r of b holds numbers 2r and
 * 2r + 1 along the sum of each of 16 columns, side by side.
 *
 * Rounding (Intel's manual, TDPBF16PS): within one product, even and odd numbers along the sum are
 * two chains of fused multiply-adds from 0. Both are added, and that is added to c. Denormal inputs
 * and results count as 0. */
#ifndef SGT_CPU_AMX_H
#define SGT_CPU_AMX_H

#include <immintrin.h>
#include <stdint.h>

/* Make all tiles 16 rows of 64 bytes, in the calling thread, until tile_release. */
static inline void tile_config(void)
{
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } c = {.palette = 1};
    for (int i = 0; i < 8; i++) c.bytes[i] = 64, c.rows[i] = 16;
    /* gcc 12 tells the compiler of the first 8 of these 64 bytes alone */
    __asm__ volatile("" : : "r"(&c) : "memory");
    _tile_loadconfig(&c);
}
#define tile_release() _tile_release()
#define tile_zero(tile) _tile_zero(tile)
#define tile_load(tile, from, line) _tile_loadd(tile, from, line)
#define tile_store(tile, to, line) _tile_stored(tile, to, line)
#define tile_dp(c, a, b) _tile_dpbf16ps(c, a, b)

#endif
