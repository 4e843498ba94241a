/* utf8_avx2.c: skips well-formed UTF-8 64 bytes at a time, after J. Keiser, D. Lemire, "Validating
 * UTF-8 in less than one instruction per byte" (Software: Practice and Experience 51, 2021). A
 * block that is all ASCII needs no look-up. Otherwise, three half bytes are looked up for each
 * byte: its upper half and both halves of the byte before it. The tables have one bit for each kind
 * of error; an error is found if all three look-ups have its bit.
 *
 * An AVX-512 version was tried (2026-11-26, AMD EPYC, Zen 4) and is not used. The same check with
 * vectors of 64 bytes gained too little to measure, and masks of first bytes with VBMI's vpermb
 * were several times slower on English. */
#include "tokenize/text/utf8.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum {
    TOO_SHORT = 1 << 0,  /* a first byte without the continuation byte that must follow it */
    TOO_LONG = 1 << 1,   /* a continuation byte after an ASCII byte */
    OVERLONG_3 = 1 << 2, /* E0 80..9F */
    TOO_LARGE = 1 << 3,  /* F4 90..BF, F5 and above */
    SURROGATE = 1 << 4,  /* ED A0..BF */
    OVERLONG_2 = 1 << 5, /* C0, C1 */
    OVERLONG_4 = 1 << 6, /* F0 followed by 80..8F; also F5 or above followed by 80..8F */
    /* two continuation bytes in a row: an error unless a first byte one or two bytes before them
     * requires them */
    TWO_CONTINUE = 1 << 7,
    ANY_LOW = TOO_SHORT | TOO_LONG | TWO_CONTINUE,
    ABOVE_4 = ANY_LOW | TOO_LARGE | OVERLONG_4,
    CONTINUES = TOO_LONG | OVERLONG_2 | TWO_CONTINUE
};

#define BYTES(x) _mm256_set1_epi8((char)(x))
#define TWICE(x) x, x
#define FOUR(x) TWICE(x), TWICE(x)
#define EIGHT(x) FOUR(x), FOUR(x)

/* Tables of possible errors. They are indexed by the upper half of the previous byte (before_high),
 * its lower half (before_low), and the upper half of the current byte (here_high). */
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

/* Return a vector that is nonzero if the UTF-8 in the 32 bytes at p has an error. The three bytes
 * before p are also read. */
static inline __m256i errors(const uint8_t *p)
{
    __m256i here = load(p), before = load(p - 1);
    __m256i found = _mm256_and_si256(look_up(before_high, upper(before)),
                                     look_up(before_low, _mm256_and_si256(before, BYTES(15))));
    found = _mm256_and_si256(found, look_up(here_high, upper(here)));
    /* TWO_CONTINUE (the top bit) is set where a continuation byte follows another. In the third
     * byte of a sequence of three or four bytes, and in the fourth of a sequence of four, it must
     * be set, and the XOR clears it. If it is missing there, the XOR sets it: this is an error,
     * too. */
    __m256i third = _mm256_subs_epu8(load(p - 2), BYTES(0xE0 - 0x80));
    __m256i fourth = _mm256_subs_epu8(load(p - 3), BYTES(0xF0 - 0x80));
    return _mm256_xor_si256(found, _mm256_and_si256(_mm256_or_si256(third, fourth), BYTES(0x80)));
}

/* Return `at`, or, if `at` is inside a character, the offset at which that character begins. */
static inline size_t begun_at(const uint8_t *s, size_t at)
{
    for (unsigned i = 1; i <= 3; i++)
        if (s[at - i] >= (i == 1 ? 0xC0 : i == 2 ? 0xE0 : 0xF0)) return at - i;
    return at;
}

size_t sgt_utf8_skip_avx2(const uint8_t *s, size_t at, size_t n)
{
    /* 1 if the previous block has a non-ASCII byte: its last character may then continue in this
     * block, which must be checked even if it is all ASCII */
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
