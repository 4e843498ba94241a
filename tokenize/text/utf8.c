/* utf8.c: divides text into units, which are UTF-8 characters or ill-formed sequences (utf8.h). It
 * uses table 3-7 of the Unicode Standard, which lists the bytes that may follow each lead byte. */
#include "tokenize/text/utf8.h"

#include <string.h>

#include "loader/base/cpu.h"

/* Return the number of continuation bytes that must follow lead byte b, or 0 if no well-formed
 * sequence of several bytes begins with b. Set *lo and *hi to the lowest and highest value allowed
 * for the first continuation byte. All further continuation bytes must be in 80..BF. */
static unsigned follows(uint8_t b, uint8_t *lo, uint8_t *hi)
{
    *lo = 0x80;
    *hi = 0xBF;
    if (b < 0xC2 || b > 0xF4) return 0;
    if (b < 0xE0) return 1;
    if (b == 0xE0) *lo = 0xA0; /* below A0: overlong forms */
    if (b == 0xED) *hi = 0x9F; /* above 9F: surrogates */
    if (b == 0xF0) *lo = 0x90; /* below 90: overlong forms */
    if (b == 0xF4) *hi = 0x8F; /* above 8F: beyond U+10FFFF */
    return b < 0xF0 ? 2 : 3;
}

size_t sgt_utf8_unit(const uint8_t *s, size_t n, uint32_t *cp)
{
    uint8_t lo, hi;
    if (s[0] < 0x80) {
        *cp = s[0];
        return 1;
    }
    unsigned more = follows(s[0], &lo, &hi);
    uint32_t c = more == 1 ? s[0] & 0x1Fu : more == 2 ? s[0] & 0x0Fu : s[0] & 0x07u;
    *cp = SGT_UTF8_ILL_FORMED;
    if (!more) return 1;
    for (unsigned i = 1; i <= more; i++) {
        if (i >= n || s[i] < lo || s[i] > hi) return i;
        c = c << 6 | (s[i] & 0x3Fu);
        lo = 0x80;
        hi = 0xBF;
    }
    *cp = c;
    return more + 1;
}

/* Return the length of a well-formed prefix of the n bytes at s. The prefix ends before the first
 * ill-formed sequence, or at the end of a character, at most 7 bytes after offset `most`. The
 * caller guarantees that the first `at` bytes are well formed. */
static size_t valid_until(const uint8_t *s, size_t at, size_t most, size_t n)
{
    while (at < most) {
        uint64_t eight;
        uint32_t cp;
        if (n - at >= 8 && (memcpy(&eight, s + at, 8), !(eight & 0x8080808080808080u))) {
            at += 8;
            continue;
        }
        size_t len = sgt_utf8_unit(s + at, n - at, &cp);
        if (cp == SGT_UTF8_ILL_FORMED) break;
        at += len;
    }
    return at;
}

size_t sgt_utf8_ascii(const uint8_t *s, size_t n)
{
    size_t i = 0;
    for (uint64_t w; i + 8 <= n; i += 8) {
        memcpy(&w, s + i, 8);
        if (w & 0x8080808080808080u) break;
    }
    while (i < n && s[i] < 0x80) i++;
    return i;
}

size_t sgt_utf8_valid(const uint8_t *s, size_t n)
{
#if defined(__x86_64__)
    /* Alternate between two methods. First, check 64 bytes one character at a time, which also
     * finds the ill-formed sequence at which the vector code has stopped. Then, let the vector code
     * skip as many well-formed blocks as possible. In this way, text that is full of ill-formed
     * sequences takes no longer than without vector code. */
    for (size_t at = 0; sgt_cpu() >= SGT_CPU_AVX2 && n - at >= 128;) {
        size_t most = at + 64;
        at = valid_until(s, at, most, n);
        if (at < most) return at;
        at = sgt_utf8_skip_avx2(s, at, n);
        if (n - at < 128) return valid_until(s, at, n, n);
    }
#endif
    return valid_until(s, 0, n, n);
}

size_t sgt_utf8_count_ill_formed(const uint8_t *s, size_t n, uint64_t *offsets, size_t max)
{
    size_t count = 0, i = 0;
    uint32_t cp;
    while ((i += sgt_utf8_valid(s + i, n - i)) < n) {
        if (count < max) offsets[count] = i;
        count++;
        i += sgt_utf8_unit(s + i, n - i, &cp);
    }
    return count;
}

size_t sgt_utf8_replace(uint8_t *out, const uint8_t *s, size_t n)
{
    size_t i = 0, o = 0;
    uint32_t cp;
    while (i < n) {
        size_t good = sgt_utf8_valid(s + i, n - i);
        memcpy(out + o, s + i, good);
        i += good;
        o += good;
        if (i == n) break;
        memcpy(out + o, "\xEF\xBF\xBD", 3);
        o += 3;
        i += sgt_utf8_unit(s + i, n - i, &cp);
    }
    return o;
}

size_t sgt_utf8_replaced_at(const uint8_t *s, size_t n, size_t to)
{
    size_t place = 0;
    uint32_t cp;
    for (size_t at = 0; at < to;) {
        const size_t len = sgt_utf8_unit(s + place, n - place, &cp);
        at += cp == SGT_UTF8_ILL_FORMED ? 3 : len;
        place += len;
    }
    return place;
}
