/* rows_neon.c: NEON for aarch64, where every CPU has it: 8 ids at a time. */
#include <stddef.h>
#include <stdint.h>

#if defined(__aarch64__)
#include <arm_neon.h>

typedef uint16x8_t vec;
#define IDS 8

static inline vec load(const uint16_t *src) { return vld1q_u16(src); }

static inline vec max(vec a, vec b) { return vmaxq_u16(a, b); }

static inline void store(void *dst, vec v) { vst1q_u16(dst, v); }

static uint16_t top_of(vec v) { return vmaxvq_u16(v); }

static inline void store_wide(void *dst, uint32x4_t v)
{
    uint64_t *to = dst;
    vst1q_u64(to, vmovl_u32(vget_low_u32(v)));
    vst1q_u64(to + 2, vmovl_high_u32(v));
}

static inline vec put(char *dst, const uint16_t *src, size_t size)
{
    vec v = load(src);
    uint32x4_t low = vmovl_u16(vget_low_u16(v)), high = vmovl_high_u16(v);
    if (size == 2) store(dst, v);
    if (size == 4) vst1q_u32((uint32_t *)(void *)dst, low);
    if (size == 4) vst1q_u32((uint32_t *)(void *)(dst + 16), high);
    if (size == 8) store_wide(dst, low);
    if (size == 8) store_wide(dst + 32, high);
    return v;
}

#include "loader/rows/rows_simd.h"

const sgt_rows sgt_rows_neon = {"neon", largest, write_row};
#else
typedef int nothing_here;
#endif
