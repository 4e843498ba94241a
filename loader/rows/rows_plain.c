/* rows_plain.c: the functions of rows.h in plain C, which define what the others give. */
#include "loader/rows/rows.h"

#include <string.h>

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
