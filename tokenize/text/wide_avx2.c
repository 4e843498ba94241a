/* wide_avx2.c: converts 16 units to UTF-8 at a time. Each becomes its bytes in 32 bits; then two
 * neighbours move together in 64, and are stored one pair after the other. */
#include "tokenize/text/wide.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define UNITS(x) _mm256_set1_epi32((int)(x))

typedef struct units16 {
    __m256i a, b; /* 16 units of 32 bits */
} units16;

/* Load the 16 units from p on. If all are ASCII, write them and return 1. */
INLINE int load(units16 *u, uint8_t *out, const uint8_t *p, size_t width)
{
    const __m128i *in = (const __m128i *)(const void *)p;
    __m128i narrow, low = _mm_loadu_si128(in);
    int ascii;
    if (width == 1) {
        narrow = low;
        ascii = !_mm_movemask_epi8(low);
        u->a = _mm256_cvtepu8_epi32(low);
        u->b = _mm256_cvtepu8_epi32(_mm_srli_si128(low, 8));
    } else if (width == 2) {
        const __m128i high = _mm_loadu_si128(in + 1);
        narrow = _mm_packus_epi16(low, high);
        ascii = _mm_testz_si128(_mm_or_si128(low, high), _mm_set1_epi16((short)0xFF80));
        u->a = _mm256_cvtepu16_epi32(low);
        u->b = _mm256_cvtepu16_epi32(high);
    } else {
        u->a = _mm256_loadu_si256((const __m256i *)in);
        u->b = _mm256_loadu_si256((const __m256i *)in + 1);
        ascii = _mm256_testz_si256(_mm256_or_si256(u->a, u->b), UNITS(~0x7Fu));
        __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(u->a, u->b), 0xD8);
        narrow = _mm_packus_epi16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    }
    if (ascii) _mm_storeu_si128((__m128i *)(void *)out, narrow);
    return ascii;
}

/* Return whether one of the units is a surrogate or above U+FFFF. */
INLINE int holds_unknown(const units16 *u, size_t width)
{
    const __m256i upper = UNITS(0xFFFFF800), surrogate = UNITS(0xD800);
    __m256i unknown = _mm256_or_si256(_mm256_cmpeq_epi32(_mm256_and_si256(u->a, upper), surrogate),
                                      _mm256_cmpeq_epi32(_mm256_and_si256(u->b, upper), surrogate));
    if (width == 4)
        unknown = _mm256_or_si256(unknown,
                                  _mm256_and_si256(_mm256_or_si256(u->a, u->b), UNITS(0xFFFF0000)));
    return !_mm256_testz_si256(unknown, unknown);
}

/* Return characters as two or three bytes. */
INLINE __m256i two_bytes(__m256i v)
{
    __m256i last = _mm256_slli_epi32(_mm256_and_si256(v, UNITS(0x3F)), 8);
    return _mm256_or_si256(_mm256_or_si256(_mm256_srli_epi32(v, 6), last), UNITS(0x80C0));
}

INLINE __m256i three_bytes(__m256i v)
{
    __m256i last = _mm256_slli_epi32(_mm256_and_si256(v, UNITS(0x3F)), 16),
            middle = _mm256_and_si256(_mm256_slli_epi32(v, 2), UNITS(0x3F00));
    __m256i others = _mm256_or_si256(_mm256_or_si256(last, middle), UNITS(0x8080E0));
    return _mm256_or_si256(_mm256_srli_epi32(v, 12), others);
}

/* Write 8 characters below U+10000 that are no surrogates, and up to 26 bytes. Return their
 * length. */
INLINE size_t put(uint8_t *out, __m256i v)
{
    const __m256i two = _mm256_cmpgt_epi32(v, UNITS(0x7F)),
                  three = _mm256_cmpgt_epi32(v, UNITS(0x7FF)), low = _mm256_set1_epi64x(0xFFFFFFFF);
    __m256i bytes = _mm256_blendv_epi8(v, two_bytes(v), two);
    if (!_mm256_testz_si256(three, three)) bytes = _mm256_blendv_epi8(bytes, three_bytes(v), three);
    __m256i bits = _mm256_slli_epi32(_mm256_sub_epi32(UNITS(1), _mm256_add_epi32(two, three)), 3);
    __m256i second = _mm256_sllv_epi64(_mm256_srli_epi64(bytes, 32), _mm256_and_si256(bits, low));
    uint64_t pairs[4], lengths[4];
    _mm256_storeu_si256((__m256i *)(void *)pairs,
                        _mm256_or_si256(_mm256_and_si256(bytes, low), second));
    bits = _mm256_add_epi32(bits, _mm256_srli_epi64(bits, 32));
    _mm256_storeu_si256((__m256i *)(void *)lengths,
                        _mm256_srli_epi64(_mm256_and_si256(bits, low), 3));
    uint8_t *to = out;
    for (int i = 0; i < 4; to += lengths[i++]) memcpy(to, &pairs[i], sizeof pairs[i]);
    return (size_t)(to - out);
}

/* Inline: each width gets a loop of its own. */
INLINE size_t convert(uint8_t *out, const uint8_t *text, size_t n, size_t width, size_t *units)
{
    size_t used = 0, i = 0;
    for (units16 u; n - i >= 16; i += 16) {
        if (load(&u, out + used, text + i * width, width)) {
            used += 16;
            continue;
        }
        if (width > 1 && holds_unknown(&u, width)) break;
        used += put(out + used, u.a);
        used += put(out + used, u.b);
    }
    *units = i;
    return used;
}

size_t sgt_wide_avx2(uint8_t *out, const void *text, size_t n, size_t width, size_t *units)
{
    if (width == 1) return convert(out, text, n, 1, units);
    return width == 2 ? convert(out, text, n, 2, units) : convert(out, text, n, 4, units);
}
#else
typedef int nothing_here;
#endif
