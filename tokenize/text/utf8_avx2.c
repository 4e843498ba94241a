/* utf8_avx2.c: skips well-formed UTF-8 64 bytes at a time, after J. Keiser, D. Lemire, "Validating
 * UTF-8 in less than one instruction per byte" (Software: Practice and Experience 51, 2021). Three
 * half bytes, of each byte and the one before it, are looked up in tables with a bit for each
 * error. An error is present if all three look-ups have its bit.
 *
 * A first look finds which blocks are not all ASCII, and only those are checked. A branch for each
 * block would cost more: in English a tenth of the blocks has a dash or an accent, and which they
 * are is hard to predict. So decoded, pages of lz4_raw take 1.16 times as long as their unpacking,
 * and took 1.19 with one look (AMD EPYC, Zen 4, 2026-11-26).
 *
 * An AVX-512 version was tried (2026-11-26, Zen 4) and not taken: the same look by vectors of 64
 * bytes gained too little to show, and masks of first bytes with VBMI's vpermb were several times
 * slower on English. */
#include "tokenize/text/utf8.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum {
    TOO_SHORT = 1 << 0,  /* a first byte without a continuation after it */
    TOO_LONG = 1 << 1,   /* ASCII with a continuation after it */
    OVERLONG_3 = 1 << 2, /* E0 80..9F */
    TOO_LARGE = 1 << 3,  /* F4 90..BF, F5 and above */
    SURROGATE = 1 << 4,  /* ED A0..BF */
    OVERLONG_2 = 1 << 5, /* C0, C1 */
    OVERLONG_4 = 1 << 6, /* F0 80..8F; and F5 and above before 80..8F */
    /* two continuations: an error unless a first byte one or two places further back needs them */
    TWO_CONTINUE = 1 << 7,
    ANY_LOW = TOO_SHORT | TOO_LONG | TWO_CONTINUE,
    ABOVE_4 = ANY_LOW | TOO_LARGE | OVERLONG_4,
    CONTINUES = TOO_LONG | OVERLONG_2 | TWO_CONTINUE
};

/* If more blocks of 64 than MANY are beyond ASCII, the next DENSE bytes are checked without a look:
 * pages of many scripts then take 1.22 times as long as their unpacking, not 1.27. */
#define MANY 40
#define DENSE ((size_t)16384)
#define BYTES(x) _mm256_set1_epi8((char)(x))
#define TWICE(x) x, x
#define FOUR(x) TWICE(x), TWICE(x)
#define EIGHT(x) FOUR(x), FOUR(x)

/* Tables indexed by the upper half and the lower half of the byte before, and by the upper half of
 * this byte. */
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

/* Return a vector that is not zero if p[0..32) holds an error. The three bytes before p are read
 * too. */
static inline __m256i errors(const uint8_t *p)
{
    __m256i here = load(p), before = load(p - 1);
    __m256i found = _mm256_and_si256(look_up(before_high, upper(before)),
                                     look_up(before_low, _mm256_and_si256(before, BYTES(15))));
    found = _mm256_and_si256(found, look_up(here_high, upper(here)));
    /* The third byte of three, and the third and fourth of four, must have TWO_CONTINUE, the top
     * bit; no other byte may have it. */
    __m256i third = _mm256_subs_epu8(load(p - 2), BYTES(0xE0 - 0x80));
    __m256i fourth = _mm256_subs_epu8(load(p - 3), BYTES(0xF0 - 0x80));
    return _mm256_xor_si256(found, _mm256_and_si256(_mm256_or_si256(third, fourth), BYTES(0x80)));
}

/* Return `at`, or where the character begins that is in the middle there. */
static inline size_t begun_at(const uint8_t *s, size_t at)
{
    for (unsigned i = 1; i <= 3; i++)
        if (s[at - i] >= (i == 1 ? 0xC0 : i == 2 ? 0xE0 : 0xF0)) return at - i;
    return at;
}

/* Return a bit for each of the blocks of 64 bytes at p, at most 64 of them, that is set if the block
 * has a byte beyond ASCII. */
static inline uint64_t beyond_ascii(const uint8_t *p, size_t blocks)
{
    uint64_t found = 0;
    for (size_t i = 0; i < blocks; i++, p += 64) {
        const __m256i both = _mm256_or_si256(load(p), load(p + 32));
        found |= (uint64_t)!_mm256_testz_si256(both, BYTES(0x80)) << i;
    }
    return found;
}

/* Check blocks without that look, four at a time and at most DENSE bytes. Return where they end, or
 * where four of them begin of which one has an ill-formed unit. */
static inline size_t skip_dense(const uint8_t *s, size_t at, size_t n)
{
    for (const size_t end = n - at < DENSE ? n : at + DENSE; end - at >= 256; at += 256) {
        __m256i found = _mm256_setzero_si256();
        for (size_t i = 0; i < 256; i += 32) found = _mm256_or_si256(found, errors(s + at + i));
        if (!_mm256_testz_si256(found, found)) break;
    }
    return at;
}

size_t sgt_utf8_skip_avx2(const uint8_t *s, size_t at, size_t n)
{
    uint64_t before = 0; /* 1: the block before may have bytes beyond ASCII */
    /* few blocks at first, for text that is full of ill-formed units */
    for (size_t blocks, most = 4; (blocks = (n - at) / 64) > 0; most = 64) {
        if (blocks > most) blocks = most;
        const uint64_t beyond = beyond_ascii(s + at, blocks);
        /* the block after may have to end a character */
        uint64_t left = (beyond | beyond << 1 | before) & UINT64_MAX >> (64 - blocks);
        before = beyond >> (blocks - 1);
        for (; left; left &= left - 1) {
            const size_t block = at + 64 * (size_t)__builtin_ctzll(left);
            const __m256i found = _mm256_or_si256(errors(s + block), errors(s + block + 32));
            if (!_mm256_testz_si256(found, found)) return begun_at(s, block);
        }
        at += 64 * blocks;
        if (__builtin_popcountll(beyond) > MANY) {
            at = skip_dense(s, at, n);
            before = 1;
        }
    }
    return begun_at(s, at);
}
#else
typedef int nothing_here;
#endif
