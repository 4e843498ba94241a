/* rows.c: the functions of rows.h in plain C, which define what the others give; in the simple way that
 * benchmarks compare with; and the choice of those for this CPU. */
#include "loader/rows/rows.h"

#include <string.h>

#include "loader/base/cpu.h"
#include "loader/handle.h"

static uint16_t largest(const uint16_t *src, size_t n)
{
    uint16_t top = 0;
    for (size_t i = 0; i < n; i++) top = src[i] > top ? src[i] : top;
    return top;
}

static uint16_t copy(uint16_t *dst, const uint16_t *src, size_t n)
{
    memcpy(dst, src, n * sizeof *dst);
    return largest(src, n);
}

static uint16_t widen(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n)
{
    uint16_t top = src[0];
    for (size_t i = 0; i < n; i++) {
        inputs[i] = src[i];
        targets[i] = src[i + 1];
        top = src[i + 1] > top ? src[i + 1] : top;
    }
    return top;
}

static uint16_t widen64(int64_t *inputs, int64_t *targets, const uint16_t *src, size_t n)
{
    uint16_t top = src[0];
    for (size_t i = 0; i < n; i++) {
        inputs[i] = src[i];
        targets[i] = src[i + 1];
        top = src[i + 1] > top ? src[i + 1] : top;
    }
    return top;
}

static uint16_t widen_row(int32_t *dst, const uint16_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] = src[i];
    return largest(src, n);
}

const sgt_rows sgt_rows_plain = {"plain",   copy, widen, largest, widen64,
                                 widen_row, copy, widen, widen64, widen_row};

/* ---- one token at a time ---- */

/* Take one more id into account. The barrier keeps the compiler from vectorizing the loop. */
static inline uint16_t larger(uint16_t top, uint16_t id)
{
    __asm__ volatile("" : "+r"(top));
    return id > top ? id : top;
}

static uint16_t copy_scalar(uint16_t *dst, const uint16_t *src, size_t n)
{
    uint16_t top = 0;
    for (size_t i = 0; i < n; i++) top = larger(top, dst[i] = src[i]);
    return top;
}

static uint16_t widen_scalar(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n)
{
    uint16_t top = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i < n) inputs[i] = src[i];
        if (i > 0) targets[i - 1] = src[i];
        top = larger(top, src[i]);
    }
    return top;
}

const sgt_rows sgt_rows_scalar = {"scalar",  copy_scalar, widen_scalar, largest, widen64,
                                  widen_row, copy_scalar, widen_scalar, widen64, widen_row};

/* ---- choosing ---- */

void sgt_loader_set_rows(sgt_loader *l, const sgt_rows *rows) { l->rows = rows; }

const sgt_rows *sgt_rows_level(int level)
{
    if (level > (int)sgt_cpu()) return NULL;
#if defined(__x86_64__)
    if (level == SGT_CPU_AVX512) return &sgt_rows_avx512;
    if (level == SGT_CPU_AVX2) return &sgt_rows_avx2;
#endif
    return level == SGT_CPU_PLAIN ? &sgt_rows_plain : NULL;
}

const sgt_rows *sgt_rows_best(void)
{
#if defined(__aarch64__)
    if (sgt_cpu_neon()) return &sgt_rows_neon;
#endif
    return sgt_rows_level((int)sgt_cpu());
}
