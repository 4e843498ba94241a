/* split_vbmi2_avx512.c: implements sgt_split, which splits text into pre-tokens, with AVX-512. The
 * code uses VBMI for look-ups in tables of 128 bytes, and VBMI2 to compress vectors of bytes. */
#include "tokenize/text/split_blocks.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define BYTES(x) _mm512_set1_epi8((char)(x))

typedef __m512i bytes64;

SPLIT_INLINE bytes64 load(const uint8_t *p) { return _mm512_loadu_si512(p); }

SPLIT_INLINE bytes64 table(const uint8_t *p)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)p));
}

SPLIT_INLINE bytes64 look_up(bytes64 t, bytes64 index) { return _mm512_shuffle_epi8(t, index); }

SPLIT_INLINE bytes64 with(bytes64 v, int x) { return _mm512_and_si512(v, BYTES(x)); }

/* a macro, not a function, because the shift count of _mm512_srli_epi16 has a signed type in some
 * compilers and an unsigned type in others */
#define halved(v, n) _mm512_srli_epi16(v, n)

SPLIT_INLINE bytes64 twice(bytes64 v) { return _mm512_add_epi8(v, v); }

SPLIT_INLINE uint64_t top_bits(bytes64 v) { return _mm512_movepi8_mask(v); }

SPLIT_INLINE uint64_t equal(bytes64 v, int x) { return _mm512_cmpeq_epi8_mask(v, BYTES(x)); }

SPLIT_INLINE uint64_t within(bytes64 v, int from, int count)
{
    return _mm512_cmplt_epu8_mask(_mm512_sub_epi8(v, BYTES(from)), BYTES(count));
}

SPLIT_INLINE uint64_t has(bytes64 v, bytes64 bit) { return _mm512_test_epi8_mask(v, bit); }

/* Return a vector that contains, for each byte i of `index`, the element bytes[i] of a table of 256
 * bytes. */
SPLIT_INLINE __m512i look_up_256(const uint8_t *bytes, __m512i index)
{
    __m512i low =
        _mm512_permutex2var_epi8(_mm512_loadu_si512(bytes), index, _mm512_loadu_si512(bytes + 64));
    __m512i high = _mm512_permutex2var_epi8(_mm512_loadu_si512(bytes + 128), index,
                                            _mm512_loadu_si512(bytes + 192));
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
}

/* Return the bits of a at the positions where `mask` has ones, and the bits of b where `mask` has
 * zeros. */
SPLIT_INLINE __m512i select_bits(__m512i mask, __m512i a, __m512i b)
{
    return _mm512_ternarylogic_epi64(mask, a, b, 0xCA);
}

/* Classify the two-byte characters. There are only 1,920 such characters, so two small tables with
 * one bit per code point suffice: one for letters, and one for numbers and white space. */
SPLIT_INLINE void look_two(const uint8_t *p, uint64_t valid, const bytes64 v[4],
                           first_classes *found)
{
    (void)p;
    const __m512i eight = _mm512_set1_epi64((long long)0x8040201008040201u);
    __m512i index =
        select_bits(BYTES(0xF8), _mm512_slli_epi16(v[0], 3), _mm512_srli_epi16(v[1], 3));
    __m512i bit = _mm512_permutexvar_epi8(v[1], eight);
    uint64_t rest =
        _mm512_mask_test_epi8_mask(valid, look_up_256(sgt_unicode_two_rest, index), bit);
    found->low |=
        _mm512_mask_test_epi8_mask(valid, look_up_256(sgt_unicode_two_letter, index), bit);
    found->high |= rest;
    if (rest) { /* mask of numbers and of the white-space characters U+0085 and U+00A0 */
        uint64_t c2 = _mm512_mask_cmpeq_epi8_mask(rest, v[0], BYTES(0xC2));
        found->low |= _mm512_mask_cmpeq_epi8_mask(c2, v[1], BYTES(0x85)) |
                      _mm512_mask_cmpeq_epi8_mask(c2, v[1], BYTES(0xA0));
    }
}

#include "tokenize/text/split_vectors.inc.h"

/* Values in the table of ASCII characters below: an sgt_class in the top two bits, and two flags in
 * the bits below, which are set for U+0020 (BLANK) and for ' (QUOTE). */
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
    __m512i before = look_up_256(c->before, _mm512_maskz_loadu_epi8(~(uint64_t)from, p - 1));
    return _mm512_mask_testn_epi8_mask(
        firsts, _mm512_permutexvar_epi8(v, _mm512_loadu_si512(c->first)), before);
}

SPLIT_LEVEL(sgt_split_avx512, classify, flatten, cut)
#endif
