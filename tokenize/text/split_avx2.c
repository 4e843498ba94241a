/* split_avx2.c: implements sgt_split, which splits text into pre-tokens, with AVX2. A block of 64
 * bytes takes two vectors of 32 bytes. Their 32-bit masks are combined into a 64-bit mask. */
#include "tokenize/text/split_blocks.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define BYTES(x) _mm256_set1_epi8((char)(x))

typedef struct bytes64 {
    __m256i low, high;
} bytes64;

SPLIT_INLINE bytes64 load(const uint8_t *p)
{
    return (bytes64){_mm256_loadu_si256((const __m256i *)(const void *)p),
                     _mm256_loadu_si256((const __m256i *)(const void *)(p + 32))};
}

SPLIT_INLINE bytes64 table(const uint8_t *p)
{
    const __m256i t =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p));
    return (bytes64){t, t};
}

SPLIT_INLINE bytes64 look_up(bytes64 t, bytes64 index)
{
    return (bytes64){_mm256_shuffle_epi8(t.low, index.low),
                     _mm256_shuffle_epi8(t.high, index.high)};
}

SPLIT_INLINE bytes64 with(bytes64 v, int x)
{
    return (bytes64){_mm256_and_si256(v.low, BYTES(x)), _mm256_and_si256(v.high, BYTES(x))};
}

SPLIT_INLINE bytes64 halved(bytes64 v, int n)
{
    return (bytes64){_mm256_srli_epi16(v.low, n), _mm256_srli_epi16(v.high, n)};
}

SPLIT_INLINE bytes64 twice(bytes64 v)
{
    return (bytes64){_mm256_add_epi8(v.low, v.low), _mm256_add_epi8(v.high, v.high)};
}

SPLIT_INLINE uint64_t top_bits(bytes64 v)
{
    return (uint32_t)_mm256_movemask_epi8(v.low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(v.high)
                                                       << 32;
}

SPLIT_INLINE uint64_t equal(bytes64 v, int x)
{
    return top_bits(
        (bytes64){_mm256_cmpeq_epi8(v.low, BYTES(x)), _mm256_cmpeq_epi8(v.high, BYTES(x))});
}

/* Return the mask of the bytes of v between `from` and `from + count - 1`. First add a constant to
 * each byte, so that `from` becomes -128, because AVX2 can only compare signed bytes. */
SPLIT_INLINE uint64_t within(bytes64 v, int from, int count)
{
    __m256i down = BYTES(0x80 - from), end = BYTES(-128 + count);
    return top_bits((bytes64){_mm256_cmpgt_epi8(end, _mm256_add_epi8(v.low, down)),
                              _mm256_cmpgt_epi8(end, _mm256_add_epi8(v.high, down))});
}

SPLIT_INLINE uint64_t has(bytes64 v, bytes64 bit)
{
    return top_bits((bytes64){_mm256_cmpeq_epi8(_mm256_and_si256(v.low, bit.low), bit.low),
                              _mm256_cmpeq_epi8(_mm256_and_si256(v.high, bit.high), bit.high)});
}

#define look_two(p, valid, v, found) look_up_groups(p, valid, v, 1, found)
#include "tokenize/text/split_vectors.inc.h"

SPLIT_INLINE void flatten(uint32_t *ends, uint64_t starts, uint32_t base)
{
    size_t count = (size_t)__builtin_popcountll(starts);
    /* Store eight ends per iteration, even if fewer are left. The number of iterations then varies
     * less, so that the CPU predicts the end of the loop better. */
    for (size_t done = 0; done < count; done += 8)
        for (size_t i = 0; i < 8; i++) {
            ends[done + i] = base + (uint32_t)_tzcnt_u64(starts);
            starts = _blsr_u64(starts);
        }
}

SPLIT_LEVEL(sgt_split_avx2, classify_ranges, flatten, split_cut_bytes)
#endif
