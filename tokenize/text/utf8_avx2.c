/* utf8_avx2.c: skips well-formed UTF-8, 64 bytes at a time, by the method of J. Keiser, D. Lemire,
 * "Validating UTF-8 in less than one instruction per byte" (Software: Practice and Experience 51,
 * 2021). If all bytes of a block are ASCII, no look-ups are needed. Otherwise, three tables are
 * looked up for each byte: one by the upper half of the byte, and two by the upper and the lower
 * half of the preceding byte. Each kind of error has one bit in the tables. The byte has an error
 * if its bit is set in the results of all three look-ups.
 *
 * An AVX-512 version was tried (2026-11-26, AMD EPYC, Zen 4) and is not used. The same method with
 * vectors of 64 bytes was not measurably faster. A method that computed masks of lead bytes with
 * VBMI's vpermb was several times slower on English text. */
#include "tokenize/text/utf8.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum {
    /* a lead byte that is not followed by the continuation byte that it requires */
    TOO_SHORT = 1 << 0,
    TOO_LONG = 1 << 1,   /* a continuation byte that follows an ASCII byte */
    OVERLONG_3 = 1 << 2, /* E0 80..9F */
    TOO_LARGE = 1 << 3,  /* F4 90..BF, F5 and above */
    SURROGATE = 1 << 4,  /* ED A0..BF */
    OVERLONG_2 = 1 << 5, /* C0, C1 */
    OVERLONG_4 = 1 << 6, /* F0 followed by 80..8F; also F5..FF followed by 80..8F */
    /* two continuation bytes in a row, which are an error unless a lead byte one or two bytes
     * before the first of them requires both */
    TWO_CONTINUE = 1 << 7,
    ANY_LOW = TOO_SHORT | TOO_LONG | TWO_CONTINUE,
    ABOVE_4 = ANY_LOW | TOO_LARGE | OVERLONG_4,
    CONTINUES = TOO_LONG | OVERLONG_2 | TWO_CONTINUE
};

#define BYTES(x) _mm256_set1_epi8((char)(x))
#define TWICE(x) x, x
#define FOUR(x) TWICE(x), TWICE(x)
#define EIGHT(x) FOUR(x), FOUR(x)

/* Tables with one bit per kind of error. They are indexed by the upper half of the preceding byte
 * (before_high), the lower half of the preceding byte (before_low), and the upper half of the
 * current byte (here_high). */
static const uint8_t before_high[16] = {EIGHT(TOO_LONG),
                                        FOUR(TWO_CONTINUE),
                                        TOO_SHORT | OVERLONG_2,
                                        TOO_SHORT,
                                        TOO_SHORT | OVERLONG_3 | SURROGATE,
                                        TOO_SHORT | TOO_LARGE | OVERLONG_4};
static const uint8_t before_low[16] = {ANY_LOW | OVERLONG_2 | OVERLONG_3 | OVERLONG_4,
                                       ANY_LOW | OVERLONG_2,
                                       TWICE(ANY_LOW),
                                       ANY_LOW | TOO_LARGE,
                                       EIGHT(ABOVE_4),
                                       ABOVE_4 | SURROGATE,
                                       TWICE(ABOVE_4)};
static const uint8_t here_high[16] = {EIGHT(TOO_SHORT), CONTINUES | OVERLONG_3 | OVERLONG_4,
                                      CONTINUES | OVERLONG_3 | TOO_LARGE,
                                      TWICE(CONTINUES | SURROGATE | TOO_LARGE), FOUR(TOO_SHORT)};

static inline __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline __m256i upper(__m256i v)
{
    return _mm256_and_si256(_mm256_srli_epi16(v, 4), BYTES(15));
}

static inline __m256i look_up(const uint8_t table[16], __m256i half)
{
    __m128i t = _mm_loadu_si128((const __m128i *)(const void *)table);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(t), half);
}

/* Check the UTF-8 in the 32 bytes at p. Return a vector that is zero if there is no error. The
 * three bytes before p must be readable. */
static inline __m256i errors(const uint8_t *p)
{
    __m256i here = load(p), before = load(p - 1);
    __m256i found = _mm256_and_si256(look_up(before_high, upper(before)),
                                     look_up(before_low, _mm256_and_si256(before, BYTES(15))));
    found = _mm256_and_si256(found, look_up(here_high, upper(here)));
    /* TWO_CONTINUE (the top bit) is set in each continuation byte that follows a continuation byte.
     * It must be set in the third byte of each sequence of three or four bytes, and in the fourth
     * byte of each sequence of four; there, the XOR clears the bit. If the bit is not set there,
     * which is an error, the XOR sets it. */
    __m256i third = _mm256_subs_epu8(load(p - 2), BYTES(0xE0 - 0x80));
    __m256i fourth = _mm256_subs_epu8(load(p - 3), BYTES(0xF0 - 0x80));
    return _mm256_xor_si256(found, _mm256_and_si256(_mm256_or_si256(third, fourth), BYTES(0x80)));
}

/* If `at` is inside a character, return the offset at which this character begins; otherwise return
 * `at`. */
static inline size_t begun_at(const uint8_t *s, size_t at)
{
    for (unsigned i = 1; i <= 3; i++)
        if (s[at - i] >= (i == 1 ? 0xC0 : i == 2 ? 0xE0 : 0xF0)) return at - i;
    return at;
}

size_t sgt_utf8_skip_avx2(const uint8_t *s, size_t at, size_t n)
{
    /* 1 if the previous block has non-ASCII bytes. Its last character may be incomplete there, so the
     * current block must be checked even if all of its bytes are ASCII. */
    int before = 0;
    for (; n - at >= 64; at += 64) {
        const __m256i both = _mm256_or_si256(load(s + at), load(s + at + 32));
        const int beyond = !_mm256_testz_si256(both, BYTES(0x80));
        if (beyond | before) {
            const __m256i found = _mm256_or_si256(errors(s + at), errors(s + at + 32));
            if (!_mm256_testz_si256(found, found)) break;
        }
        before = beyond;
    }
    return begun_at(s, at);
}
#endif
