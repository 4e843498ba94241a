/* amx.h: the AMX instructions that matrix products of bfloat16 need. On CPUs without AMX, tests
 * emulate them (tests/kernels/trap).
 *
 *     tile_config();                                    // in each thread
 *     tile_zero(0), tile_load(4, a, 64), tile_load(6, b, 64);
 *     tile_dp(0, 4, 6), tile_store(0, c, 64);
 *     tile_release();
 *
 * AMX has eight tile registers (tiles), each with 16 rows of 64 bytes. The index of a tile must be
 * a compile-time constant. tile_dp(c, a, b) multiplies a (16, 32) by b (32, 16), both bfloat16, and
 * adds the result to c (16, 16) in float32. b is stored interleaved: row r of its tile holds
 * elements 2r and 2r + 1 of each of b's 16 columns, next to each other.
 *
 * Rounding (Intel's manual, TDPBF16PS): within one tile product, the terms with even and with odd
 * index are summed separately, each in a chain of fused multiply-adds that starts from 0. The two
 * results are added, and their sum is added to c. Denormal inputs and results count as 0. */
#ifndef SGT_CPU_AMX_H
#define SGT_CPU_AMX_H

#include <immintrin.h>
#include <stdint.h>

#include "kernels/cpu/simd.h"

/* Configure all eight tiles of the calling thread as 16 rows of 64 bytes. Call tile_release when
 * the thread no longer needs the tiles. */
static inline void tile_config(void)
{
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } c = {.palette = 1};
    for (int i = 0; i < 8; i++) c.bytes[i] = 64, c.rows[i] = 16;
    /* gcc 12 assumes that the instruction reads only the first 8 of these 64 bytes; make gcc store
     * all 64 bytes before the instruction */
    __asm__ volatile("" : : "r"(&c) : "memory");
    _tile_loadconfig(&c);
}
#define tile_release() _tile_release()
#define tile_zero(tile) _tile_zero(tile)
#define tile_load(tile, from, line) _tile_loadd(tile, from, line)
#define tile_store(tile, to, line) _tile_stored(tile, to, line)
#define tile_dp(c, a, b) _tile_dpbf16ps(c, a, b)

/* ---- pairs of tiles ---- */

/* Pairs of AMX tiles, and blocks of 32 x 32 sums. k is the index over which a matrix product sums.
 *
 * A pair is two tiles, one after the other in memory. There are two kinds:
 *   left pair    32 rows of the left operand, with 32 values of k in each. The first tile holds
 *                rows 0 to 15, the second tile rows 16 to 31.
 *   right pair   32 columns of the right operand, with 32 values of k in each. The first tile holds
 *                columns 0 to 15, the second tile columns 16 to 31. In a row of a tile, each column
 *                takes 4 bytes: its elements for two successive values of k.
 *
 * To add 32 values of k to a block, load the two tiles of a left pair and the two of a right pair,
 * and multiply each left tile by each right tile. This takes 4 loads for 4 tile products.
 *
 * If a matrix does not fill a pair, the packing functions write zeros for the missing elements, and
 * do not read beyond the matrix. */

enum { SIDE = 32, TILE = 1024, PAIR = 2 * TILE, BLOCK = SIDE * SIDE, BLOCK_BYTES = 4 * BLOCK };

/* Return n / SIDE, rounded up: the number of blocks of SIDE elements that n elements fill. */
SGT_INLINE size_t units(size_t n) { return (n + SIDE - 1) / SIDE; }

SGT_INLINE size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Compute one block of a matrix product, in steps that sum over SIDE values of k each. Step i
 * multiplies the left pair of tiles at `left` + i * PAIR by the right pair at `right` + i *
 * right_step (in bytes). Set c (SIDE, SIDE) to the sum over all steps, or add the sum to c if `add`
 * is set. */
SGT_INLINE void amx_block(float *c, const char *left, const char *right, size_t right_step,
                          size_t steps, int add)
{
    enum { LINE = SIDE * sizeof(float), LOWER = SIDE * SIDE / 2 };
    /* gcc 12 does not know that a tile load reads memory, so make gcc complete all stores before
     * the loads */
    __asm__ volatile("" : : : "memory");
    if (add) {
        tile_load(0, c, LINE);
        tile_load(1, c + W, LINE);
        tile_load(2, c + LOWER, LINE);
        tile_load(3, c + LOWER + W, LINE);
    } else {
        tile_zero(0);
        tile_zero(1);
        tile_zero(2);
        tile_zero(3);
    }
    for (size_t p = 0; p < steps; p++, left += PAIR, right += right_step) {
        tile_load(4, left, 64);
        tile_load(5, left + TILE, 64);
        tile_load(6, right, 64);
        tile_load(7, right + TILE, 64);
        tile_dp(0, 4, 6);
        tile_dp(1, 4, 7);
        tile_dp(2, 5, 6);
        tile_dp(3, 5, 7);
    }
    tile_store(0, c, LINE);
    tile_store(1, c + W, LINE);
    tile_store(2, c + LOWER, LINE);
    tile_store(3, c + LOWER + W, LINE);
}

/* ---- vectors of bfloat16 ---- */

/* Load a vector of 32 bfloat16 elements. The first n elements come from p, and all others are 0. If
 * n is 0, p is not read. */
SGT_INLINE __m512i amx_numbers(const uint16_t *p, size_t n)
{
    if (n >= SIDE) return _mm512_loadu_si512(p);
    return n ? _mm512_maskz_loadu_epi16((__mmask32)((1u << n) - 1), p) : _mm512_setzero_si512();
}

/* Indexes with which _mm512_permutex2var_epi16 undoes the interleaving by vturns_low and
 * vturns_high. Among the 64 16-bit elements of the two source vectors, counted from 0, amx_even
 * selects elements 0, 2, 4, ..., and amx_odd elements 1, 3, 5, ... */
SGT_INLINE __m512i amx_even(void)
{
    return _mm512_setr_epi32(0x20000, 0x60004, 0xa0008, 0xe000c, 0x120010, 0x160014, 0x1a0018,
                             0x1e001c, 0x220020, 0x260024, 0x2a0028, 0x2e002c, 0x320030, 0x360034,
                             0x3a0038, 0x3e003c);
}

SGT_INLINE __m512i amx_odd(void)
{
    return _mm512_add_epi32(amx_even(), _mm512_set1_epi32(0x10001));
}

/* Round two vectors of floats to bfloat16 and interleave them: each 4-byte lane i of the result
 * holds a[i] in its lower half and b[i] in its upper half. Denormal numbers become 0, as in AMX
 * tiles. */
SGT_INLINE __m512i amx_pair(vf a, vf b)
{
    __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(b, a);
    __m512i in_turn = _mm512_setr_epi32(0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005,
                                        0x160006, 0x170007, 0x180008, 0x190009, 0x1a000a, 0x1b000b,
                                        0x1c000c, 0x1d000d, 0x1e000e, 0x1f000f);
    return _mm512_permutexvar_epi16(in_turn, halves);
}

/* Round two vectors of floats to bfloat16 and concatenate them: the first 16 elements of the result
 * come from a, the last 16 from b. */
SGT_INLINE __m512i amx_along(vf a, vf b) { return (__m512i)_mm512_cvtne2ps_pbh(b, a); }

SGT_INLINE void amx_put(char *p, __m512i x) { _mm512_storeu_si512(p, x); }
SGT_INLINE void amx_stream(char *p, __m512i x) { _mm512_stream_si512((__m512i *)(void *)p, x); }

/* ---- packing ---- */

/* Pack the matrix x (rows, k), at most 32 by 32, as a left pair: two tiles that are the left
 * operand of a matrix product. Successive rows of x begin `ld` elements apart. */
SGT_INLINE void amx_pack_rows(char *out, const uint16_t *x, size_t ld, size_t rows, size_t k)
{
    for (size_t i = 0; i < SIDE; i++)
        amx_put(out + i * 64, amx_numbers(x + (i < rows ? i * ld : 0), i < rows ? k : 0));
}

/* Transpose a 16 x 16 matrix of 4-byte elements, whose rows are the vectors in `group`, and write
 * the result to `out` in rows of 64 bytes. */
SGT_INLINE void amx_put_transposed(char *out, __m512i group[W])
{
    vf v[W];
    for (int i = 0; i < W; i++) v[i] = (vf)group[i];
    vtranspose(v);
    for (int i = 0; i < W; i++) amx_put(out + i * 64, (__m512i)v[i]);
}

/* Pack the transpose of the matrix x (rows, k), at most 32 by 32, as a right pair: two tiles that
 * are the right operand of a matrix product. Successive rows of x begin `ld` elements apart. */
SGT_INLINE void amx_pack_transposed(char *out, const uint16_t *x, size_t ld, size_t rows, size_t k)
{
    for (size_t i = 0; i < SIDE; i += W) {
        __m512i row[W];
        for (size_t j = 0; j < W; j++)
            row[j] = amx_numbers(x + (i + j < rows ? (i + j) * ld : 0), i + j < rows ? k : 0);
        amx_put_transposed(out + i / W * TILE, row);
    }
}

/* Pack the transpose of the matrix x (k, columns), at most 32 by 32, as a left pair: two tiles that
 * are the left operand of a matrix product. Successive rows of x begin `ld` elements apart. */
SGT_INLINE void amx_pack_columns(char *out, const uint16_t *x, size_t ld, size_t k, size_t columns)
{
    const __m512i low = vturns_low(), high = vturns_high();
    __m512i upper[W], lower[W];
    for (size_t i = 0; i < W; i++) {
        __m512i a = amx_numbers(x + (2 * i < k ? 2 * i * ld : 0), 2 * i < k ? columns : 0);
        size_t next = 2 * i + 1;
        __m512i b = amx_numbers(x + (next < k ? next * ld : 0), next < k ? columns : 0);
        upper[i] = _mm512_permutex2var_epi16(a, low, b);
        lower[i] = _mm512_permutex2var_epi16(a, high, b);
    }
    amx_put_transposed(out, upper);
    amx_put_transposed(out + TILE, lower);
}

/* Pack a float matrix x (k, columns), at most 32 by 32, as a right pair: two tiles that are the
 * right operand of a matrix product. Row i is multiplied by factor[i] and then rounded to bfloat16.
 * Successive rows of x begin `ld` floats apart. */
SGT_INLINE void amx_pack_factored(char *out, const float *x, size_t ld, const float *factor,
                                  size_t k, size_t columns)
{
    for (size_t i = 0; i < SIDE; i += 2)
        for (size_t j = 0; j < SIDE; j += W) {
            vf row[2] = {vset(0), vset(0)};
            for (size_t r = i; r < i + 2 && r < k && j < columns; r++)
                row[r - i] = vload_upto(x + r * ld + j, columns - j) * vset(factor[r]);
            amx_put(out + j / W * TILE + i / 2 * 64, amx_pair(row[0], row[1]));
        }
}

/* Repack a matrix (32, 32) from a right pair of tiles into a left pair. As a right pair, it is the
 * right operand of matrix products that sum over its rows. As a left pair, it is the left operand
 * of matrix products that sum over its columns. */
SGT_INLINE void amx_right_to_left(char *out, const char *right)
{
    const __m512i even = amx_even(), odd = amx_odd();
    for (size_t i = 0; i < W; i++) {
        __m512i a = _mm512_loadu_si512(right + i * 64),
                b = _mm512_loadu_si512(right + TILE + i * 64);
        amx_put(out + 2 * i * 64, _mm512_permutex2var_epi16(a, even, b));
        amx_put(out + (2 * i + 1) * 64, _mm512_permutex2var_epi16(a, odd, b));
    }
}

#endif
