/* rows_neon.c: NEON for aarch64, where every CPU has it: 8 ids at a time. Non-temporal stores
 * (stnp) are not used: compilers do not emit them from C, and cores may ignore the hint. The last
 * ids of a row are left to plain C. */
#include "loader/rows/rows.h"

#if defined(__aarch64__)
#include <arm_neon.h>

static uint16_t larger(uint16x8_t v, uint16_t x)
{
    uint16_t t = vmaxvq_u16(v);
    return t > x ? t : x;
}

static uint16_t largest(const uint16_t *src, size_t n)
{
    uint16x8_t top = vdupq_n_u16(0);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) top = vmaxq_u16(top, vld1q_u16(src + i));
    return larger(top, sgt_rows_plain.largest(src + i, n - i));
}

static uint16_t write_u16(void *first, void *second, const uint16_t *src, size_t n)
{
    uint16_t *dst = first;
    (void)second;
    uint16x8_t top = vdupq_n_u16(0);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint16x8_t v = vld1q_u16(src + i);
        vst1q_u16(dst + i, v);
        top = vmaxq_u16(top, v);
    }
    return larger(top, sgt_rows_plain.write[SGT_OUTPUT_U16](dst + i, NULL, src + i, n - i));
}

static void store8(int32_t *dst, uint16x8_t v)
{
    vst1q_s32(dst, vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(v))));
    vst1q_s32(dst + 4, vreinterpretq_s32_u32(vmovl_high_u16(v)));
}

static uint16_t write_i32(void *first, void *second, const uint16_t *src, size_t n)
{
    int32_t *inputs = first, *targets = second;
    uint16x8_t top = vdupq_n_u16(src[0]);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint16x8_t next = vld1q_u16(src + i + 1);
        store8(inputs + i, vld1q_u16(src + i));
        store8(targets + i, next);
        top = vmaxq_u16(top, next);
    }
    return larger(top,
                  sgt_rows_plain.write[SGT_OUTPUT_I32](inputs + i, targets + i, src + i, n - i));
}

static void store4(int64_t *dst, uint16x4_t v)
{
    uint32x4_t wide = vmovl_u16(v);
    vst1q_s64(dst, vreinterpretq_s64_u64(vmovl_u32(vget_low_u32(wide))));
    vst1q_s64(dst + 2, vreinterpretq_s64_u64(vmovl_high_u32(wide)));
}

static uint16_t write_i64(void *first, void *second, const uint16_t *src, size_t n)
{
    int64_t *inputs = first, *targets = second;
    uint16x8_t top = vdupq_n_u16(src[0]);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint16x8_t here = vld1q_u16(src + i), next = vld1q_u16(src + i + 1);
        store4(inputs + i, vget_low_u16(here));
        store4(inputs + i + 4, vget_high_u16(here));
        store4(targets + i, vget_low_u16(next));
        store4(targets + i + 4, vget_high_u16(next));
        top = vmaxq_u16(top, next);
    }
    return larger(top,
                  sgt_rows_plain.write[SGT_OUTPUT_I64](inputs + i, targets + i, src + i, n - i));
}

static uint16_t write_i32_row(void *first, void *second, const uint16_t *src, size_t n)
{
    int32_t *dst = first;
    (void)second;
    uint16x8_t top = vdupq_n_u16(0);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint16x8_t v = vld1q_u16(src + i);
        store8(dst + i, v);
        top = vmaxq_u16(top, v);
    }
    return larger(top, sgt_rows_plain.write[SGT_OUTPUT_I32_ROWS](dst + i, NULL, src + i, n - i));
}

const sgt_rows sgt_rows_neon = {"neon",
                                largest,
                                {write_u16, write_i32, write_i64, write_i32_row},
                                {write_u16, write_i32, write_i64, write_i32_row}};
#else
typedef int nothing_here;
#endif
