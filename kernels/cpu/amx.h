/* amx.h: the AMX operations that products of bfloat16 need: the instructions, or with SGT_AMX_TWIN
 * the same in vectors of AVX-512, for tests on CPUs without AMX (make CPU=amx; tests/kernels).
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
#include <string.h>

#define AMX_NAME(x) x
#if !defined(SGT_AMX_TWIN)
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

#else
static _Thread_local uint8_t amx_tiles[8][16][64];

static inline void tile_config(void) { memset(amx_tiles, 0xff, sizeof amx_tiles); }
static inline void tile_release(void) {}
static inline void tile_zero(int t) { memset(amx_tiles[t], 0, sizeof amx_tiles[t]); }
static inline void tile_load(int t, const void *from, long line)
{
    for (int r = 0; r < 16; r++) memcpy(amx_tiles[t][r], (const char *)from + r * line, 64);
}
static inline void tile_store(int t, void *to, long line)
{
    for (int r = 0; r < 16; r++) memcpy((char *)to + r * line, amx_tiles[t][r], 64);
}

/* Flushing denormals to 0 is left to the vector unit. The barriers keep loads and stores, and so
 * the arithmetic between them, where it is on. */
static inline void tile_dp(int c, int a, int b)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(0x9fc0); /* round to nearest, denormals are 0, no exceptions */
    __asm__ volatile("" : : : "memory");
    for (int m = 0; m < 16; m++) {
        __m512 even = _mm512_setzero_ps(), odd = even;
        for (int k = 0; k < 16; k++) {
            uint32_t x;
            memcpy(&x, amx_tiles[a][m] + 4 * k, 4);
            __m512i left = _mm512_set1_epi32((int)x), right = _mm512_loadu_si512(amx_tiles[b][k]);
            const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
            even = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(left, 16)),
                                   _mm512_castsi512_ps(_mm512_slli_epi32(right, 16)), even);
            odd = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(left, upper)),
                                  _mm512_castsi512_ps(_mm512_and_si512(right, upper)), odd);
        }
        __m512 sum = _mm512_add_ps(even, odd);
        _mm512_storeu_ps(amx_tiles[c][m], _mm512_add_ps(_mm512_loadu_ps(amx_tiles[c][m]), sum));
    }
    __asm__ volatile("" : : : "memory");
    _mm_setcsr(before);
}
#endif
#endif
