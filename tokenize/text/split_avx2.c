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

/* Classes of non-ASCII characters, as bits at their first bytes: the bits of an sgt_class. */
typedef struct first_classes {
    uint64_t low, high;
} first_classes;

/* Where 64 two-bit classes are found in 16 bytes of unicode.h's table: those of characters that
 * differ in their last byte only. */
typedef struct last_bytes {
    __m256i index, low; /* byte index below 16, and the lower class bit in that byte */
} last_bytes;

SPLIT_INLINE last_bytes last_of(__m256i v)
{
    const __m256i four = _mm256_set1_epi32(0x40100401);
    return (last_bytes){_mm256_and_si256(_mm256_srli_epi16(v, 2), BYTES(15)),
                        _mm256_shuffle_epi8(four, _mm256_and_si256(v, BYTES(3)))};
}

/* Return FF in the bytes of t that have the bit, else 0. */
SPLIT_INLINE __m256i has(__m256i t, __m256i bit)
{
    return _mm256_cmpeq_epi8(_mm256_and_si256(t, bit), bit);
}

SPLIT_INLINE __m256i twice(__m256i v) { return _mm256_add_epi8(v, v); }

/* Look up classes group by group. Characters that share all bytes but the last form a group of 64,
 * whose classes are 16 bytes of unicode.h's table. All characters of one group are looked up at
 * once; a block rarely has more than a few groups. r: first bytes to look up; v: the block, and the
 * block moved by 1 to 3 bytes; more: bytes that follow a first byte. */
SPLIT_INLINE void look_up_groups(const uint8_t *p, uint64_t r, const bytes64 v[4], int more,
                                 first_classes *found)
{
    last_bytes low = last_of(v[more].low), high = last_of(v[more].high);
    while (r) {
        unsigned at = (unsigned)__builtin_ctzll(r), group;
        uint64_t same = r & equal(v[0], p[at]);
        if (more == 1) {
            group = p[at] & 0x1Fu;
        } else {
            same &= equal(v[1], p[at + 1]);
            group = (p[at] & 0xFu) << 6 | (p[at + 1] & 0x3Fu);
        }
        if (more == 3) {
            same &= equal(v[2], p[at + 2]);
            group = group << 6 | (p[at + 2] & 0x3Fu);
        }
        const uint8_t *classes =
            sgt_unicode_classes[sgt_unicode_block[group >> 2]] + (size_t)16 * (group & 3);
        __m256i t =
            _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)classes));
        __m256i a = _mm256_shuffle_epi8(t, low.index), b = _mm256_shuffle_epi8(t, high.index);
        found->low |= same & top_bits(has(a, low.low), has(b, high.low));
        found->high |= same & top_bits(has(a, twice(low.low)), has(b, twice(high.low)));
        r &= ~same;
    }
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

/* Give every byte of a character the class of its first byte. three, four: first bytes of
 * characters of at least that many bytes. in: bits carried over from the previous block. Return the
 * bits to carry over to the next. */
SPLIT_INLINE uint64_t spread(uint64_t *class, uint64_t first, uint64_t three, uint64_t four,
                             uint64_t in)
{
    three &= first;
    four &= first;
    *class |= first | first << 1 | three << 2 | four << 3 | in;
    return first >> 63 | three >> 62 | four >> 61;
}

/* Classify the non-ASCII characters. A first byte with the right bytes behind it is a character;
 * all other bytes are ill-formed. */
static __attribute__((noinline)) void classify_wide(const uint8_t *p, uint64_t in[2],
                                                    split_block *b)
{
    bytes64 v[4] = {load(p), load(p + 1), load(p + 2), load(p + 3)};
    first_classes found = {0, 0};
    uint64_t next = within(v[1], 0x80, 0x40), next2 = next & within(v[2], 0x80, 0x40);
    uint64_t two = within(v[0], 0xC2, 0xE0 - 0xC2) & next, three = within(v[0], 0xE0, 0x10) & next2,
             four = 0;
    uint64_t beyond = within(v[0], 0xF0, 5) & next2;
    if (two) look_up_groups(p, two, v, 1, &found);
    if (three) {
        found.low |=
            three & top_bits(all_letters(v[0].low, v[1].low), all_letters(v[0].high, v[1].high));
        three &= ~(equal(v[0], 0xE0) & within(v[1], 0x80, 0x20)); /* overlong forms */
        look_up_groups(p, three & ~found.low, v, 2, &found);
    }
    if (beyond) {
        four = beyond & within(v[3], 0x80, 0x40);
        four &= ~(equal(v[0], 0xF0) & within(v[1], 0x80, 0x10)) &
                ~(equal(v[0], 0xF4) & within(v[1], 0x90, 0x30));
        look_up_groups(p, four, v, 3, &found);
    }
    three |= four;
    in[0] = spread(&b->low, found.low, three, four, in[0]);
    in[1] = spread(&b->high, found.high, three, four, in[1]);
    b->wide_space = found.low & found.high;
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

SPLIT_INLINE void contractions(const uint8_t *p, uint64_t quotes, uint64_t *two, uint64_t *three)
{
    bytes64 a = load(p + 1), b = load(p + 2);
    *two = (equal(a, 's') | equal(a, 't') | equal(a, 'd') | equal(a, 'm')) & quotes;
    *three = ((equal(a, 'l') & equal(b, 'l')) | ((equal(a, 'v') | equal(a, 'r')) & equal(b, 'e'))) &
             quotes;
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

SPLIT_INLINE uint64_t equal_bytes(const uint8_t *p, char x) { return equal(load(p), x); }

SPLIT_INLINE uint64_t upper(const uint8_t *p) { return within(load(p), 'A', 26); }

static const split_level level = {classify,        classify_wide, contractions, flatten,
                                  split_cut_bytes, equal_bytes,   upper};

size_t sgt_split_avx2(sgt_splitter *s, uint32_t *ends, size_t max)
{
    return split_by(&level, s, ends, max);
}
#else
typedef int nothing_here;
#endif
