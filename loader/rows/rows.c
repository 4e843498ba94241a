/* rows.c: the functions of rows.h in plain C, and the choice of the fastest version for this CPU.
 * The versions with vector instructions must give the same results as those in plain C. */
#include "loader/rows/rows.h"

#include "loader/base/cpu.h"
#include "loader/handle.h"

static uint32_t largest(size_t width, const void *src, size_t n)
{
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = sgt_id_at(src, width, i);
        top = id > top ? id : top;
    }
    return top;
}

/* Return the larger of two ids. The empty assembly statement keeps the compiler from vectorizing
 * the loop that calls this function, because the plain versions are the scalar baseline in speed
 * comparisons. */
static inline uint32_t larger(uint32_t top, uint32_t id)
{
    __asm__ volatile("" : "+r"(top));
    return id > top ? id : top;
}

SGT_ROWS_INLINE uint32_t put_row(size_t width, sgt_output o, void *first, void *second,
                                 const void *src, size_t n)
{
    const size_t pairs = (size_t)sgt_output_pairs(o);
    uint32_t top = pairs ? sgt_id_at(src, width, 0) : 0;
    for (size_t i = 0; i < n; i++) {
        sgt_output_put(first, o, i, (int32_t)sgt_id_at(src, width, i));
        if (pairs) sgt_output_put(second, o, i, (int32_t)sgt_id_at(src, width, i + 1));
        top = larger(top, sgt_id_at(src, width, i + pairs));
    }
    return top;
}

static uint32_t write_row(size_t width, sgt_output o, void *first, void *second, const void *src,
                          size_t n)
{
    return sgt_rows_write(put_row, width, o, first, second, src, n);
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
