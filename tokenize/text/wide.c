/* wide.c: Latin-1, UTF-16 and UTF-32 to UTF-8. Most units of most texts are ASCII, so 16 units are
 * tested and narrowed at a time. */
#include "tokenize/text/wide.h"

#include "loader/base/cpu.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static inline uint32_t unit(const void *text, size_t i, size_t width)
{
    if (width == 1) return ((const uint8_t *)text)[i];
    if (width == 2) return ((const uint16_t *)text)[i];
    return ((const uint32_t *)text)[i];
}

#if defined(__SSE2__)
/* Write the low bytes of 16 units to `out`, and return a bit for each unit that is not ASCII. */
static inline unsigned narrow(uint8_t *out, const void *text, size_t i, size_t width)
{
    const __m128i *in = (const __m128i *)((const uint8_t *)text + i * width);
    const __m128i none = _mm_setzero_si128(), high = _mm_set1_epi16((short)0xFF80);
    __m128i a = _mm_loadu_si128(in);
    if (width == 1) {
        _mm_storeu_si128((__m128i *)out, a);
        return (unsigned)_mm_movemask_epi8(a);
    }
    __m128i b = _mm_loadu_si128(in + 1);
    if (width == 4) { /* a unit beyond 16 bits saturates, and is still not ASCII */
        a = _mm_packs_epi32(a, b);
        b = _mm_packs_epi32(_mm_loadu_si128(in + 2), _mm_loadu_si128(in + 3));
    }
    _mm_storeu_si128((__m128i *)out, _mm_packus_epi16(a, b));
    a = _mm_cmpeq_epi16(_mm_and_si128(a, high), none);
    b = _mm_cmpeq_epi16(_mm_and_si128(b, high), none);
    return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(a, b)) ^ 0xFFFF;
}
#else
static inline unsigned narrow(uint8_t *out, const void *text, size_t i, size_t width)
{
    unsigned others = 0;
    for (unsigned k = 0; k < 16; k++) {
        uint32_t c = unit(text, i + k, width);
        out[k] = (uint8_t)c;
        others |= (unsigned)(c >= 0x80) << k;
    }
    return others;
}
#endif

/* Copy units from `i` on up to the first that is not ASCII. Return their number. */
static inline size_t copy_ascii(uint8_t *out, const void *text, size_t i, size_t n, size_t width)
{
    size_t from = i;
    for (; n - i >= 16; i += 16) {
        unsigned others = narrow(out + (i - from), text, i, width);
        if (others) return i - from + (size_t)__builtin_ctz(others);
    }
    for (uint32_t c; i < n && (c = unit(text, i, width)) < 0x80; i++) out[i - from] = (uint8_t)c;
    return i - from;
}

/* Write a character that is not ASCII. Return its length. */
static inline size_t put(uint8_t *out, uint32_t c)
{
    if (c < 0x800) {
        out[0] = (uint8_t)(0xC0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c >> 11 == 0xD800 >> 11 || c > 0x10FFFF) c = 0xFFFD;
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xE0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (c & 0x3F));
    return 4;
}

/* Convert text[from ... to), and the unit behind it if a pair begins there. Add the number of bytes
 * to *used, and return the place of the next unit. Inline: each width gets a loop of its own. */
static inline size_t convert(uint8_t *out, size_t *used, const void *text, size_t from, size_t to,
                             size_t n, size_t width)
{
    size_t i = from;
    while (i < to) {
        size_t ascii = copy_ascii(out + *used, text, i, to, width);
        *used += ascii;
        i += ascii;
        for (uint32_t c; i < to && (c = unit(text, i, width)) >= 0x80; i++) {
            uint32_t low = i + 1 < n ? unit(text, i + 1, width) : 0;
            if (width > 1 && c >> 10 == 0xD800 >> 10 && low >> 10 == 0xDC00 >> 10) {
                c = 0x10000 + ((c & 0x3FF) << 10 | (low & 0x3FF));
                i++;
            }
            *used += put(out + *used, c);
        }
    }
    return i;
}

size_t sgt_wide_to_utf8_plain(uint8_t *out, const void *text, size_t n, size_t width)
{
    size_t used = 0;
    if (width == 1) convert(out, &used, text, 0, n, n, 1);
    else if (width == 2) convert(out, &used, text, 0, n, n, 2);
    else convert(out, &used, text, 0, n, n, 4);
    return used;
}

size_t sgt_wide_by(sgt_wide_level *level, uint8_t *out, const void *text, size_t n, size_t width)
{
    size_t used = 0, i = 0;
    for (;;) {
        size_t units;
        const uint8_t *p = (const uint8_t *)text + i * width;
        used += level(out + used, p, n - i, width, &units);
        i += units;
        if (i == n) return used;
        size_t to = n - i < 16 ? n : i + 16;
        i = convert(out, &used, text, i, to, n, width);
    }
}

size_t sgt_wide_to_utf8(uint8_t *out, const void *text, size_t n, size_t width)
{
#if defined(__x86_64__)
    if (sgt_cpu_vbmi2()) return sgt_wide_by(sgt_wide_avx512, out, text, n, width);
    if (sgt_cpu() >= SGT_CPU_AVX2) return sgt_wide_by(sgt_wide_avx2, out, text, n, width);
#endif
    return sgt_wide_to_utf8_plain(out, text, n, width);
}
