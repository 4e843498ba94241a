/* rows_neon.c: the functions of rows.h with NEON, which every aarch64 CPU has. They copy 8 ids of 2
 * bytes, or 4 ids of 4 bytes, at a time. */
#include "loader/rows/rows.h"

#if defined(__aarch64__)
#include <arm_neon.h>

typedef uint16x8_t vec;

static inline vec load(const void *src) { return vreinterpretq_u16_u8(vld1q_u8(src)); }

static inline void store(void *dst, vec v) { vst1q_u8(dst, vreinterpretq_u8_u16(v)); }

SGT_ROWS_INLINE vec max(vec a, vec b, size_t width)
{
    if (width == 2) return vmaxq_u16(a, b);
    return vreinterpretq_u16_u32(vmaxq_u32(vreinterpretq_u32_u16(a), vreinterpretq_u32_u16(b)));
}

SGT_ROWS_INLINE uint32_t top_of(vec v, size_t width)
{
    return width == 2 ? vmaxvq_u16(v) : vmaxvq_u32(vreinterpretq_u32_u16(v));
}

/* Store 4 ids as integers of `size` bytes, which is 4 or 8. */
SGT_ROWS_INLINE void store_four(char *dst, uint32x4_t v, size_t size)
{
    if (size == 4) vst1q_u8((uint8_t *)dst, vreinterpretq_u8_u32(v));
    if (size == 8) vst1q_u8((uint8_t *)dst, vreinterpretq_u8_u64(vmovl_u32(vget_low_u32(v))));
    if (size == 8) vst1q_u8((uint8_t *)dst + 16, vreinterpretq_u8_u64(vmovl_high_u32(v)));
}

SGT_ROWS_INLINE vec put(char *dst, const char *src, size_t width, size_t size)
{
    vec v = load(src);
    if (size == 2) store(dst, v);
    else if (width == 4) store_four(dst, vreinterpretq_u32_u16(v), size);
    else {
        store_four(dst, vmovl_u16(vget_low_u16(v)), size);
        store_four(dst + 4 * size, vmovl_high_u16(v), size);
    }
    return v;
}

#include "loader/rows/rows_simd.h"

const sgt_rows sgt_rows_neon = {"neon", largest, write_row};
#endif
