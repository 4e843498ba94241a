/* rows.h: windows of 16-bit ids into rows: the functions that touch every token, in plain C and in vectors. The widths
 * agree to the bit; tests/loader/test_rows.c holds them to it. Each returns the largest id it met, so that the check
 * against the vocabulary costs no second pass. Nothing needs alignment; nothing outside the given lengths is
 * touched. */
#ifndef SGT_ROWS_H
#define SGT_ROWS_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_rows {
    const char *level; /* "plain", "avx2", "avx512" */

    /* dst[i] = src[i], i < n */
    uint16_t (*copy)(uint16_t *dst, const uint16_t *src, size_t n);

    /* inputs[i] = src[i], targets[i] = src[i + 1], i < n: reads src[0 ... n] */
    uint16_t (*widen)(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n);

    uint16_t (*largest)(const uint16_t *src, size_t n);
} sgt_rows;

const sgt_rows *sgt_rows_best(void);
const sgt_rows *sgt_rows_level(int level); /* an sgt_cpu_level; NULL where sgt_cpu() does not allow it */

extern const sgt_rows sgt_rows_plain, sgt_rows_avx2, sgt_rows_avx512; /* for rows.c */

#endif
