/* rows.c: the functions of rows.h in plain C, which define what the others give, and the choice of
 * those for this CPU. */
#include "loader/rows/rows.h"

#include "loader/base/cpu.h"
#include "loader/handle.h"

static uint16_t largest(const uint16_t *src, size_t n)
{
    uint16_t top = 0;
    for (size_t i = 0; i < n; i++) top = src[i] > top ? src[i] : top;
    return top;
}

/* Take one more id into account. The barrier keeps the compiler from vectorizing the loop. */
static inline uint16_t larger(uint16_t top, uint16_t id)
{
    __asm__ volatile("" : "+r"(top));
    return id > top ? id : top;
}

static uint16_t write_u16(void *first, void *second, const uint16_t *src, size_t n)
{
    uint16_t *row = first, top = 0;
    (void)second;
    for (size_t i = 0; i < n; i++) top = larger(top, row[i] = src[i]);
    return top;
}

static uint16_t write_i32(void *first, void *second, const uint16_t *src, size_t n)
{
    int32_t *inputs = first, *targets = second;
    uint16_t top = src[0];
    for (size_t i = 0; i < n; i++) {
        inputs[i] = src[i];
        targets[i] = src[i + 1];
        top = larger(top, src[i + 1]);
    }
    return top;
}

static uint16_t write_i64(void *first, void *second, const uint16_t *src, size_t n)
{
    int64_t *inputs = first, *targets = second;
    uint16_t top = src[0];
    for (size_t i = 0; i < n; i++) {
        inputs[i] = src[i];
        targets[i] = src[i + 1];
        top = larger(top, src[i + 1]);
    }
    return top;
}

const sgt_rows sgt_rows_plain = {"plain", largest, {write_u16, write_i32, write_i64}};

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
