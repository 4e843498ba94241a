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

/* The caller's output is a constant, so that the compiler makes a loop for each. */
static inline __attribute__((always_inline)) uint16_t put_row(sgt_output o, void *first,
                                                              void *second, const uint16_t *src,
                                                              size_t n)
{
    const size_t pairs = (size_t)sgt_output_pairs(o);
    uint16_t top = pairs ? src[0] : 0;
    for (size_t i = 0; i < n; i++) {
        sgt_output_put(first, o, i, src[i]);
        if (pairs) sgt_output_put(second, o, i, src[i + 1]);
        top = larger(top, src[i + pairs]);
    }
    return top;
}

static uint16_t write_row(sgt_output o, void *first, void *second, const uint16_t *src, size_t n)
{
    if (o == SGT_OUTPUT_U16) return put_row(SGT_OUTPUT_U16, first, second, src, n);
    if (o == SGT_OUTPUT_I32) return put_row(SGT_OUTPUT_I32, first, second, src, n);
    return put_row(SGT_OUTPUT_I64, first, second, src, n);
}

const sgt_rows sgt_rows_plain = {"plain", largest, write_row};

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
