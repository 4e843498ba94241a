/* test_utf8.c: the units of text (utf8.h). The ill-formed units are those that Python's decoder
 * replaces, as Unicode recommends. Python's results were recorded. */
#include <stdlib.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "tests/expect.h"
#include "tests/tokenize/common.h"
#include "tokenize/text/utf8.h"

Test(utf8, every_code_point_is_one_unit)
{
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        uint8_t s[4];
        uint32_t got;
        size_t n = put_utf8(s, cp), len = sgt_utf8_unit(s, n, &got);
        int surrogate = cp >= 0xD800 && cp < 0xE000;
        cr_assert_eq(got, surrogate ? SGT_UTF8_ILL_FORMED : cp, "U+%04X", cp);
        cr_assert_eq(len, surrogate ? 1 : n, "U+%04X", cp);
        cr_assert_eq(sgt_utf8_valid(s, n), surrogate ? 0 : n, "U+%04X", cp);
        /* a character that is cut off is one ill-formed unit */
        for (size_t cut = 1; cut < n && !surrogate; cut++) {
            cr_assert_eq(sgt_utf8_unit(s, cut, &got), cut, "U+%04X", cp);
            cr_assert_eq(got, SGT_UTF8_ILL_FORMED, "U+%04X", cp);
        }
    }
}

/* All strings of four bytes, with a few values for each class of bytes. */
Test(utf8, replaces_what_python_replaces)
{
    static const uint8_t leads[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                    0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE,
                                    0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
    const size_t kinds = sizeof leads;
    scoped(FILE) *f = fopen(VECTORS "utf8.txt", "r");
    unsigned first, want, lines = 0;
    cr_assert(f);
    for (; fscanf(f, "%x %x", &first, &want) == 2; lines++) {
        uint32_t crc = 0;
        for (size_t i = 0; i < kinds * kinds * kinds; i++) {
            uint8_t s[4] = {(uint8_t)first, leads[i / (kinds * kinds)], leads[i / kinds % kinds],
                            leads[i % kinds]};
            uint8_t out[12];
            crc = crc32_of(crc, out, sgt_utf8_replace(out, s, 4));
        }
        cr_assert_eq(crc, want, "strings that start with %02X", first);
    }
    cr_assert_eq(lines, kinds);
}

/* ---- skipping well-formed text with vectors ---- */

static size_t valid_by_units(const uint8_t *s, size_t n)
{
    size_t i = 0;
    uint32_t cp;
    while (i < n) {
        size_t len = sgt_utf8_unit(s + i, n - i, &cp);
        if (cp == SGT_UTF8_ILL_FORMED) break;
        i += len;
    }
    return i;
}

enum { PLACES = 8 };

/* Count ill-formed units, and store the offsets of the first of them. */
static size_t count_by_units(const uint8_t *s, size_t n, uint64_t places[PLACES])
{
    size_t count = 0;
    uint32_t cp;
    for (size_t i = 0, len; i < n; i += len) {
        len = sgt_utf8_unit(s + i, n - i, &cp);
        if (cp == SGT_UTF8_ILL_FORMED && count++ < PLACES) places[count - 1] = i;
    }
    return count;
}

/* Check that all levels find the same well-formed beginning as `valid_by_units`, and the same
 * ill-formed units as `count_by_units`. The text has exactly as much memory as it needs, so that
 * the sanitizer finds reads beyond it. */
static void hold_levels_to_units(const uint8_t *text, size_t n, const char *what)
{
    uint64_t want[PLACES] = {0};
    const size_t count = count_by_units(text, n, want);
    scoped_memory uint8_t *s = malloc(n + 1);
    cr_assert(s);
    memcpy(s + 1, text, n);
    for (int level = 0; level <= (int)sgt_cpu(); level++) {
        const char *name = sgt_cpu_names[level];
        uint64_t places[PLACES] = {0};
        must(sgt_cpu_limit(name, why));
        size_t valid = sgt_utf8_valid(s + 1, n),
               got = sgt_utf8_count_ill_formed(s + 1, n, places, PLACES);
        must(sgt_cpu_limit("auto", why));
        cr_assert_eq(valid, valid_by_units(text, n), "%s, %s: %zu bytes of %zu", name, what, valid,
                     n);
        cr_assert_eq(got, count, "%s, %s: %zu units", name, what, got);
        cr_assert_arr_eq(places, want, sizeof want, "%s, %s", name, what);
    }
}

/* Put four bytes of every kind after well-formed text, near the ends of the vector code's
 * blocks. */
Test(utf8, four_bytes_at_borders)
{
    static const uint8_t kinds[] = {0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0};
    uint8_t text[320];
    for (unsigned first = 0x7F; first < 0x100; first++)
        for (unsigned rest = 0; rest < 512; rest++) {
            const uint8_t four[] = {(uint8_t)first, kinds[rest & 7], kinds[rest >> 3 & 7],
                                    kinds[rest >> 6]};
            size_t at = 124 + (first + rest) % 72, n = sizeof text - rest % 3;
            for (size_t i = 0; i < n; i += 2) memcpy(text + i, rest & 1 ? "\xD0\xB6" : "ab", 2);
            at -= at % 2;
            memcpy(text + at, four, 4);
            hold_levels_to_units(text, n, "four bytes");
        }
}

/* Put a character, complete or cut off, at the ends of the vector code's blocks of 64 bytes, early
 * and late in a text of 650 blocks. The blocks before it are ASCII, or the first 325, or all, are
 * beyond ASCII. */
Test(utf8, characters_between_groups_of_blocks)
{
    static const char *const cases[] = {
        "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\x80"};
    static const size_t begins[] = {1, 2, 5, 6, 69, 70, 73, 133, 325, 326, 389};
    const size_t places = sizeof begins / sizeof *begins;
    static uint8_t text[650 * 64];
    for (size_t i = 0; i < places * (sizeof cases / sizeof *cases); i++)
        for (size_t before = 0; before < 5; before++)
            for (size_t dense = 0; dense <= sizeof text; dense += 325 * 64) {
                const char *c = cases[i / places];
                for (size_t k = 0; k < sizeof text; k += 2)
                    memcpy(text + k, k < dense ? "\xD0\xB6" : "ab", 2);
                memcpy(text + 64 * begins[i % places] - before, c, strlen(c));
                hold_levels_to_units(text, sizeof text, "a character");
            }
}

Test(utf8, random_text_by_every_level)
{
    uint64_t seed = test_seed();
    rng r = {seed, 0};
    uint8_t text[1000];
    char what[64];
    sprintf(what, "SEED=%llu", (unsigned long long)seed);
    for (int i = 0; i < 20000; i++) {
        size_t n = hard_text(&r, text, sizeof text, i & 1);
        /* sometimes replace one byte */
        if (n && i % 8 == 0) text[below(&r, (uint32_t)n)] = (uint8_t)below(&r, 256);
        hold_levels_to_units(text, n, what);
    }
}
