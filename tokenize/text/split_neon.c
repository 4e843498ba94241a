/* split_neon.c: implements sgt_split, which splits text into pre-tokens, with NEON, which every
 * aarch64 CPU has. A block of 64 bytes takes four vectors of 16 bytes. Vector k contains the bytes
 * k, k + 4, k + 8 and so on of the block. With this order, a few shifts suffice to convert the
 * result of a vector comparison to a 64-bit mask. */
#include "tokenize/text/split_blocks.h"

#if defined(__aarch64__)
#include <arm_neon.h>

typedef uint8x16x4_t bytes64;

/* Apply the function f to each of the four vectors of a and the corresponding vector of b. */
#define EACH(f, a, b)                                                                            \
    ((bytes64){{f((a).val[0], (b).val[0]), f((a).val[1], (b).val[1]), f((a).val[2], (b).val[2]), \
                f((a).val[3], (b).val[3])}})
#define SHIFTED(v, n) vshlq_u8(v, vreinterpretq_s8_u8(n))

SPLIT_INLINE bytes64 load(const uint8_t *p) { return vld4q_u8(p); }

SPLIT_INLINE bytes64 four(uint8x16_t v) { return (bytes64){{v, v, v, v}}; }

SPLIT_INLINE bytes64 bytes(int x) { return four(vdupq_n_u8((uint8_t)x)); }

SPLIT_INLINE bytes64 table(const uint8_t *p) { return four(vld1q_u8(p)); }

SPLIT_INLINE bytes64 look_up(bytes64 t, bytes64 index) { return EACH(vqtbl1q_u8, t, index); }

SPLIT_INLINE bytes64 with(bytes64 v, int x) { return EACH(vandq_u8, v, bytes(x)); }

SPLIT_INLINE bytes64 halved(bytes64 v, int n) { return EACH(SHIFTED, v, bytes(-n)); }

SPLIT_INLINE bytes64 twice(bytes64 v) { return EACH(vaddq_u8, v, v); }

SPLIT_INLINE uint64_t top_bits(bytes64 v)
{
    /* The upper four bits of each byte of `bits` are the top bits of four consecutive bytes of the
     * block. Copy them to the lower four bits of the same byte. Then, one narrowing shift can pack
     * the four bits of each byte, so that the 16 bytes become a mask of 64 bits. */
    const uint8x16_t low = vsriq_n_u8(v.val[1], v.val[0], 1),
                     high = vsriq_n_u8(v.val[3], v.val[2], 1), bits = vsriq_n_u8(high, low, 2);
    const uint16x8_t pairs = vreinterpretq_u16_u8(vsriq_n_u8(bits, bits, 4));
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(pairs, 4)), 0);
}

SPLIT_INLINE uint64_t equal(bytes64 v, int x) { return top_bits(EACH(vceqq_u8, v, bytes(x))); }

SPLIT_INLINE uint64_t within(bytes64 v, int from, int count)
{
    const bytes64 above = EACH(vsubq_u8, v, bytes(from));
    return top_bits(EACH(vcltq_u8, above, bytes(count)));
}

SPLIT_INLINE uint64_t has(bytes64 v, bytes64 bit) { return top_bits(EACH(vtstq_u8, v, bit)); }

#define look_two(p, valid, v, found) look_up_groups(p, valid, v, 1, found)
#include "tokenize/text/split_vectors.inc.h"

SPLIT_LEVEL(sgt_split_neon, classify_ranges, split_flatten, split_cut_bytes)
#endif
