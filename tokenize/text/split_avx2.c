/* split_avx2.c: the split rule with AVX2. A block is two vectors of 32 bytes, whose masks are
 * joined. */
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

SPLIT_INLINE uint64_t top_bits(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

SPLIT_INLINE uint64_t equal(bytes64 v, int x)
{
    return top_bits(_mm256_cmpeq_epi8(v.low, BYTES(x)), _mm256_cmpeq_epi8(v.high, BYTES(x)));
}

/* Return the mask of the unsigned bytes from ... from + count - 1. AVX2 compares signed bytes only,
 * so the range is moved down to begin at -128. */
SPLIT_INLINE uint64_t within(bytes64 v, int from, int count)
{
    __m256i down = BYTES(0x80 - from), end = BYTES(-128 + count);
    return top_bits(_mm256_cmpgt_epi8(end, _mm256_add_epi8(v.low, down)),
                    _mm256_cmpgt_epi8(end, _mm256_add_epi8(v.high, down)));
}

/* Where 64 two-bit classes are found in 16 bytes of unicode.h's table: those of characters that
 * differ in their last byte only. */
typedef struct last_bytes {
    bytes64 index, low; /* byte index below 16, and the lower class bit in that byte */
} last_bytes;

SPLIT_INLINE __m256i index_of(__m256i v)
{
    return _mm256_and_si256(_mm256_srli_epi16(v, 2), BYTES(15));
}

SPLIT_INLINE __m256i low_of(__m256i v)
{
    return _mm256_shuffle_epi8(_mm256_set1_epi32(0x40100401), _mm256_and_si256(v, BYTES(3)));
}

SPLIT_INLINE last_bytes last_of(bytes64 v)
{
    return (last_bytes){{index_of(v.low), index_of(v.high)}, {low_of(v.low), low_of(v.high)}};
}

/* Return FF in the bytes of t that have the bit, else 0. */
SPLIT_INLINE __m256i has(__m256i t, __m256i bit)
{
    return _mm256_cmpeq_epi8(_mm256_and_si256(t, bit), bit);
}

SPLIT_INLINE __m256i twice(__m256i v) { return _mm256_add_epi8(v, v); }

/* Add the classes of the characters of a group whose first bytes are `same`, from 16 bytes of
 * classes. */
SPLIT_INLINE void add_classes(const uint8_t *classes, last_bytes last, uint64_t same,
                              first_classes *found)
{
    __m256i t =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)classes));
    __m256i a = _mm256_shuffle_epi8(t, last.index.low), b = _mm256_shuffle_epi8(t, last.index.high);
    found->low |= same & top_bits(has(a, last.low.low), has(b, last.low.high));
    found->high |= same & top_bits(has(a, twice(last.low.low)), has(b, twice(last.low.high)));
}

#include "tokenize/text/split_vectors.inc.h"

SPLIT_INLINE void look_two(const uint8_t *p, uint64_t valid, const bytes64 v[4],
                           first_classes *found)
{
    look_up_groups(p, valid, v, 1, found);
}

/* Return FF where a character of three bytes belongs to an eighth of its first byte's code points
 * (512 of 4,096) that are all letters. This covers most Chinese and Korean, which have many groups
 * of 64. The table has a bit for each eighth, by the first byte's low four bits. tests/tokenize
 * checks it against the classes. */
SPLIT_INLINE __m256i all_letters(__m256i first, __m256i second)
{
    static const uint8_t eighths[16] = {0,    0,    0,    0xFC, 0xBF, 0xFF, 0xFF, 0xFF,
                                        0xFF, 0xFF, 0xC3, 0xFF, 0xFF, 0x07, 0,    0};
    __m256i table =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)eighths));
    const __m256i bits = _mm256_set1_epi64x((long long)0x8040201008040201u);
    __m256i bit =
        _mm256_shuffle_epi8(bits, _mm256_and_si256(_mm256_srli_epi16(second, 3), BYTES(7)));
    return has(_mm256_shuffle_epi8(table, _mm256_and_si256(first, BYTES(15))), bit);
}

SPLIT_INLINE void look_three(const uint8_t *p, uint64_t valid, const bytes64 v[4],
                             first_classes *found)
{
    const uint64_t letters = valid & top_bits(all_letters(v[0].low, v[1].low),
                                              all_letters(v[0].high, v[1].high)),
                   overlong = equal(v[0], 0xE0) & within(v[1], 0x80, 0x20);
    found->low |= letters;
    look_up_groups(p, valid & ~letters & ~overlong, v, 2, found);
}

SPLIT_INLINE void classify(const uint8_t *p, split_block *b)
{
    bytes64 v = load(p),
            lower = {_mm256_or_si256(v.low, BYTES(0x20)), _mm256_or_si256(v.high, BYTES(0x20))};
    b->blank = equal(v, ' ');
    b->narrow_space = b->blank | within(v, '\t', 5);
    b->low = within(lower, 'a', 26) | b->narrow_space;
    b->high = within(v, '0', 10) | b->narrow_space;
    b->quote = equal(v, '\'');
    b->wide = top_bits(v.low, v.high);
}

SPLIT_INLINE void flatten(uint32_t *ends, uint64_t starts, uint32_t base)
{
    size_t count = (size_t)__builtin_popcountll(starts);
    /* store eight ends at a time: the loop's end is then predicted more often */
    for (size_t done = 0; done < count; done += 8)
        for (size_t i = 0; i < 8; i++) {
            ends[done + i] = base + (uint32_t)_tzcnt_u64(starts);
            starts = _blsr_u64(starts);
        }
}

static const split_level level = {classify,        classify_wide, contractions, flatten,
                                  split_cut_bytes, equal_bytes,   upper};

size_t sgt_split_avx2(sgt_splitter *s, uint32_t *ends, size_t max)
{
    return split_by(&level, s, ends, max);
}
#else
typedef int nothing_here;
#endif
