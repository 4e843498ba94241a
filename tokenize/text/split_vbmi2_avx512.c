/* split_vbmi2_avx512.c: the split rule with AVX-512, using VBMI's look-ups in 128 bytes and VBMI2's
 * compression. */
#include "tokenize/text/split_blocks.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define BYTES(x) _mm512_set1_epi8((char)(x))

/* Entries of the ASCII table: the bits of an sgt_class at the top, flags for U+0020 and ' below. */
enum {
    LETTER = SGT_CLASS_LETTER << 6,
    NUMBER = SGT_CLASS_NUMBER << 6,
    SPACE = SGT_CLASS_SPACE << 6,
    BLANK = 1 << 5,
    QUOTE = 1 << 4
};

#define R4(x) x, x, x, x
#define R8(x) R4(x), R4(x)
static const uint8_t ascii[128] = {
    R8(0), 0, SPACE, SPACE, SPACE, SPACE, SPACE, 0, 0, R8(0), R8(0), /* 00-1F */
    /* 20-3F */
    SPACE | BLANK, 0, 0, 0, 0, 0, 0, QUOTE, R8(0), R8(NUMBER), NUMBER, NUMBER, 0, 0, R4(0), 0,
    LETTER, LETTER, LETTER, R4(LETTER), R8(LETTER), R8(LETTER), LETTER, LETTER, LETTER, 0,
    R4(0), /* 40-5F */
    /* 60-7F */
    0, LETTER, LETTER, LETTER, R4(LETTER), R8(LETTER), R8(LETTER), LETTER, LETTER, LETTER, 0,
    R4(0)};

/* Return table[index] for each byte of index, from a table of 256 bytes. */
SPLIT_INLINE __m512i look_up(const uint8_t *table, __m512i index)
{
    __m512i low =
        _mm512_permutex2var_epi8(_mm512_loadu_si512(table), index, _mm512_loadu_si512(table + 64));
    __m512i high = _mm512_permutex2var_epi8(_mm512_loadu_si512(table + 128), index,
                                            _mm512_loadu_si512(table + 192));
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
}

/* Return a's bits where mask has ones, b's elsewhere. */
SPLIT_INLINE __m512i select_bits(__m512i mask, __m512i a, __m512i b)
{
    return _mm512_ternarylogic_epi64(mask, a, b, 0xCA);
}

/* Classes of non-ASCII characters, as bits at their first bytes: the bits of an sgt_class. */
typedef struct first_classes {
    uint64_t low, high;
} first_classes;

/* Look up classes group by group. Characters that share all bytes but the last form a group of 64,
 * whose classes are 16 bytes of unicode.h's table. All characters of one group are looked up at
 * once; a block rarely has more than a few groups. r: first bytes to look up; v: the block, and the
 * block moved by 1 to 3 bytes; more: bytes that follow a first byte. */
SPLIT_INLINE void look_up_groups(const uint8_t *p, uint64_t r, const __m512i v[4], int more,
                                 first_classes *found)
{
    const __m512i four = _mm512_set1_epi32(0x40100401);
    __m512i index = _mm512_and_si512(_mm512_srli_epi16(v[more], 2), BYTES(15));
    __m512i low = _mm512_permutexvar_epi8(v[more], four), high = _mm512_add_epi8(low, low);
    while (r) {
        unsigned at = (unsigned)__builtin_ctzll(r), group;
        __mmask64 same = _mm512_mask_cmpeq_epi8_mask(r, v[0], BYTES(p[at]));
        if (more == 1) {
            group = p[at] & 0x1Fu;
        } else {
            same = _mm512_mask_cmpeq_epi8_mask(same, v[1], BYTES(p[at + 1]));
            group = (p[at] & 0xFu) << 6 | (p[at + 1] & 0x3Fu);
        }
        if (more == 3) {
            same = _mm512_mask_cmpeq_epi8_mask(same, v[2], BYTES(p[at + 2]));
            group = group << 6 | (p[at + 2] & 0x3Fu);
        }
        const uint8_t *classes =
            sgt_unicode_classes[sgt_unicode_block[group >> 2]] + (size_t)16 * (group & 3);
        __m512i t = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)classes));
        t = _mm512_shuffle_epi8(t, index);
        found->low |= _mm512_mask_test_epi8_mask(same, t, low);
        found->high |= _mm512_mask_test_epi8_mask(same, t, high);
        r &= ~same;
    }
}

/* Classify characters of two bytes: 1,920 code points, all in two tables. */
SPLIT_INLINE void look_two(uint64_t valid, const __m512i v[4], first_classes *found)
{
    const __m512i eight = _mm512_set1_epi64((long long)0x8040201008040201u);
    __m512i index =
        select_bits(BYTES(0xF8), _mm512_slli_epi16(v[0], 3), _mm512_srli_epi16(v[1], 3));
    __m512i bit = _mm512_permutexvar_epi8(v[1], eight);
    uint64_t rest = _mm512_mask_test_epi8_mask(valid, look_up(sgt_unicode_two_rest, index), bit);
    found->low |= _mm512_mask_test_epi8_mask(valid, look_up(sgt_unicode_two_letter, index), bit);
    found->high |= rest;
    if (rest) { /* numbers, or white space: U+0085, U+00A0 */
        uint64_t c2 = _mm512_mask_cmpeq_epi8_mask(rest, v[0], BYTES(0xC2));
        found->low |= _mm512_mask_cmpeq_epi8_mask(c2, v[1], BYTES(0x85)) |
                      _mm512_mask_cmpeq_epi8_mask(c2, v[1], BYTES(0xA0));
    }
}

/* Classify characters of three bytes. Most are in a group of 64 that are all letters, or all
 * "other". (Overlong forms and surrogates count as all "other".) */
SPLIT_INLINE void look_three(const uint8_t *p, uint64_t valid, const __m512i v[4],
                             first_classes *found)
{
    const __m512i four = _mm512_set1_epi32(0x40100401);
    __m512i index =
        select_bits(BYTES(0xF0), _mm512_slli_epi16(v[0], 4), _mm512_srli_epi16(v[1], 2));
    __m512i kinds = look_up(sgt_unicode_groups, index);
    __m512i low = _mm512_permutexvar_epi8(v[1], four);
    found->low |= _mm512_mask_test_epi8_mask(valid, kinds, low);
    uint64_t mixed = _mm512_mask_test_epi8_mask(valid, kinds, _mm512_add_epi8(low, low));
    look_up_groups(p, mixed, v, 2, found);
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
SPLIT_INLINE void classify_wide(const uint8_t *p, uint64_t in[2], split_block *b)
{
    __m512i v[4] = {_mm512_loadu_si512(p), _mm512_loadu_si512(p + 1), _mm512_loadu_si512(p + 2),
                    _mm512_loadu_si512(p + 3)};
    const __m512i after = BYTES(0xC0); /* signed: 80..BF are less, ASCII and first bytes are not */
    first_classes found = {0, 0};
    uint64_t next = _mm512_cmplt_epi8_mask(v[1], after),
             next2 = next & _mm512_cmplt_epi8_mask(v[2], after), four = 0;
    uint64_t two =
        _mm512_cmplt_epu8_mask(_mm512_sub_epi8(v[0], BYTES(0xC2)), BYTES(0xE0 - 0xC2)) & next;
    uint64_t three =
        _mm512_cmplt_epu8_mask(_mm512_sub_epi8(v[0], BYTES(0xE0)), BYTES(0x10)) & next2;
    uint64_t beyond = _mm512_cmpge_epu8_mask(v[0], BYTES(0xF0)) & next2;
    if (two) look_two(two, v, &found);
    if (three) look_three(p, three, v, &found);
    if (beyond) {
        four = _mm512_mask_cmplt_epi8_mask(beyond, v[3], after) &
               _mm512_cmple_epu8_mask(v[0], BYTES(0xF4));
        four &= ~(_mm512_cmpeq_epi8_mask(v[0], BYTES(0xF0)) &
                  _mm512_cmplt_epu8_mask(v[1], BYTES(0x90)));
        four &= ~(_mm512_cmpeq_epi8_mask(v[0], BYTES(0xF4)) &
                  _mm512_cmpge_epu8_mask(v[1], BYTES(0x90)));
        look_up_groups(p, four, v, 3, &found);
    }
    three |= four;
    in[0] = spread(&b->low, found.low, three, four, in[0]);
    in[1] = spread(&b->high, found.high, three, four, in[1]);
    b->wide_space = found.low & found.high;
}

SPLIT_INLINE void classify(const uint8_t *p, split_block *b)
{
    __m512i v = _mm512_loadu_si512(p);
    __mmask64 wide = _mm512_movepi8_mask(v);
    __m512i t = _mm512_maskz_permutex2var_epi8(_knot_mask64(wide), _mm512_loadu_si512(ascii), v,
                                               _mm512_loadu_si512(ascii + 64));
    b->wide = wide;
    b->low = _mm512_movepi8_mask(_mm512_add_epi8(t, t));
    b->high = _mm512_movepi8_mask(t);
    b->narrow_space = b->low & b->high;
    b->blank = _mm512_movepi8_mask(_mm512_slli_epi16(t, 2));
    b->quote = _mm512_movepi8_mask(_mm512_slli_epi16(t, 3));
}

SPLIT_INLINE void contractions(const uint8_t *p, uint64_t quotes, uint64_t *two, uint64_t *three)
{
    __m512i a = _mm512_loadu_si512(p + 1), b = _mm512_loadu_si512(p + 2);
    *two = (_mm512_cmpeq_epi8_mask(a, BYTES('s')) | _mm512_cmpeq_epi8_mask(a, BYTES('t')) |
            _mm512_cmpeq_epi8_mask(a, BYTES('d')) | _mm512_cmpeq_epi8_mask(a, BYTES('m'))) &
           quotes;
    uint64_t ll = _mm512_cmpeq_epi8_mask(a, BYTES('l')) & _mm512_cmpeq_epi8_mask(b, BYTES('l'));
    uint64_t vr = _mm512_cmpeq_epi8_mask(a, BYTES('v')) | _mm512_cmpeq_epi8_mask(a, BYTES('r'));
    *three = (ll | (vr & _mm512_cmpeq_epi8_mask(b, BYTES('e')))) & quotes;
}

SPLIT_INLINE void store16(uint32_t *ends, __m128i places, __m512i base)
{
    _mm512_storeu_si512(ends, _mm512_add_epi32(_mm512_cvtepu8_epi32(places), base));
}

#define RISING(x) (x), (x) + 1, (x) + 2, (x) + 3, (x) + 4, (x) + 5, (x) + 6, (x) + 7
static const uint8_t places[64] = {RISING(0),  RISING(8),  RISING(16), RISING(24),
                                   RISING(32), RISING(40), RISING(48), RISING(56)};

SPLIT_INLINE void flatten(uint32_t *ends, uint64_t starts, uint32_t base)
{
    __m512i at = _mm512_maskz_compress_epi8(starts, _mm512_loadu_si512(places)),
            from = _mm512_set1_epi32((int)base);
    store16(ends, _mm512_castsi512_si128(at), from);
    store16(ends + 16, _mm512_extracti32x4_epi32(at, 1), from);
    if (__builtin_popcountll(starts) > 32) {
        store16(ends + 32, _mm512_extracti32x4_epi32(at, 2), from);
        store16(ends + 48, _mm512_extracti32x4_epi32(at, 3), from);
    }
}

SPLIT_INLINE uint64_t cut(const sgt_cuts *c, const uint8_t *p, unsigned from)
{
    __m512i v = _mm512_loadu_si512(p);
    uint64_t firsts = _mm512_cmpge_epu8_mask(v, BYTES(0xC0)) & ~(uint64_t)from;
    if (!firsts) return 0;
    __m512i before = look_up(c->before, _mm512_maskz_loadu_epi8(~(uint64_t)from, p - 1));
    return _mm512_mask_testn_epi8_mask(
        firsts, _mm512_permutexvar_epi8(v, _mm512_loadu_si512(c->first)), before);
}

SPLIT_INLINE uint64_t equal_bytes(const uint8_t *p, char x)
{
    return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(p), BYTES(x));
}

SPLIT_INLINE uint64_t upper(const uint8_t *p)
{
    return _mm512_cmplt_epu8_mask(_mm512_sub_epi8(_mm512_loadu_si512(p), BYTES('A')), BYTES(26));
}

static const split_level level = {classify, classify_wide, contractions, flatten,
                                  cut,      equal_bytes,   upper};

size_t sgt_split_avx512(sgt_splitter *s, uint32_t *ends, size_t max)
{
    return split_by(&level, s, ends, max);
}
#else
typedef int nothing_here;
#endif
