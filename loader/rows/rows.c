/* rows.c: choose the functions for this CPU, and define them in plain C. */
#include "loader/rows/rows.h"

#include <string.h>

#include "loader/base/cpu.h"

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
