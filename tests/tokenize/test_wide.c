/* test_wide.c: strings in memory that are not UTF-8, and many texts in one call. */
#include <stdlib.h>
#include <string.h>

#include "tests/expect.h"
#include "tests/tokenize/common.h"
#include "tokenize/text/wide.h"

enum { MOST = 300 };

static const uint32_t edges[] = {0,      0x7F,   0x80,   0xFF,   0x100,   0x7FF,   0x800,
                                 0xD7FF, 0xE000, 0xFFFD, 0xFFFF, 0x10000, 0x10FFFF};

/* Store unit i of a text of this width. */
static void set_unit(void *text, size_t width, size_t i, uint32_t c)
{
    if (width == 1) ((uint8_t *)text)[i] = (uint8_t)c;
    else if (width == 2) ((uint16_t *)text)[i] = (uint16_t)c;
    else ((uint32_t *)text)[i] = c;
}

/* Write random units to text, and what they are as UTF-8 to `want`. Return the bytes of `want`. */
static size_t random_text(rng *r, void *text, size_t width, size_t n, uint8_t *want)
{
    enum { ASCII, ANY, EDGE, PAIR, BAD, KINDS };
    size_t bytes = 0;
    uint32_t often = 1 + below(r, 40), kinds = 1 + below(r, KINDS);
    uint32_t any = width == 1 ? 0x100 : below(r, 2) ? 0x800 : 0xD800;
    for (size_t i = 0; i < n; i++) {
        uint32_t c = below(r, 128), kind = below(r, often) ? ASCII : below(r, kinds);
        if (kind == EDGE) c = edges[below(r, width == 1 ? 4 : width == 2 ? 11 : 13)];
        if (kind == ANY) c = below(r, any);
        set_unit(text, width, i, c);
        if (width > 1 && kind == PAIR && i + 1 < n) {
            c = 0x10000 + below(r, 0x100000);
            set_unit(text, width, i, 0xD7C0 + (c >> 10));
            set_unit(text, width, ++i, 0xDC00 + (c & 0x3FF));
        }
        if (width > 1 && kind == BAD) { /* a surrogate without a partner, or too large a number */
            uint32_t large = 0x110000u << c / 2 % 12;
            set_unit(text, width, i, width == 4 && c % 2 ? large : 0xDC00 + c);
            c = 0xFFFD;
        }
        bytes += put_utf8(want + bytes, c);
    }
    return bytes;
}

static void check_converter(size_t (*convert)(uint8_t *, const void *, size_t, size_t))
{
    uint64_t seed = test_seed();
    rng r = {seed, 0};
    for (int i = 0; i < 30000; i++) {
        size_t width = (size_t)1 << i % 3, n = below(&r, i % 5 ? 40 : MOST);
        size_t most = width == 1 ? 2 : width == 2 ? 3 : 4;
        scoped_memory uint32_t *text = malloc(n * width + 1); /* no more than the text */
        scoped_memory uint8_t *got = malloc(most * n + SGT_WIDE_PAD);
        uint8_t want[4 * MOST];
        size_t bytes = random_text(&r, text, width, n, want);
        cr_assert_eq(convert(got, text, n, width), bytes, "SEED=%llu, text %d",
                     (unsigned long long)seed, i);
        cr_assert_arr_eq(got, want, bytes, "SEED=%llu, text %d", (unsigned long long)seed, i);
    }
}

Test(wide, becomes_utf8) { check_converter(sgt_wide_to_utf8); }

Test(wide, becomes_utf8_by_the_definition) { check_converter(sgt_wide_to_utf8_plain); }

Test(wide, a_high_surrogate_alone)
{
    static const uint16_t text[] = {'a', 0xD83D, 'b', 0xD83D, 0xD83D, 0xDE00, 0xD83D};
    static const char want[] = "a\xEF\xBF\xBD"
                               "b\xEF\xBF\xBD\xF0\x9F\x98\x80\xEF\xBF\xBD";
    uint8_t got[64];
    cr_assert_eq(sgt_wide_to_utf8(got, text, 7, 2), sizeof want - 1);
    cr_assert_arr_eq(got, want, sizeof want - 1);
}

/* Texts of all widths in one call have the ids that each has by itself. */
Test(wide, texts_in_one_call)
{
    enum { COUNT = 50 };
    static uint32_t room[COUNT][MOST];
    static uint8_t utf8[4 * MOST];
    static uint16_t want[COUNT * 4 * MOST], got[COUNT * 4 * MOST];
    sgt_text texts[COUNT];
    size_t ends[COUNT], want_ends[COUNT], at = 0;
    scoped(sgt_vocab) *v = gpt2();
    scoped(sgt_encoder) *e = new_encoder(v);
    rng r = {test_seed(), 0};
    for (int i = 0; i < COUNT; i++) {
        size_t width = (size_t)1 << i % 4, n = below(&r, MOST);
        if (width == 8) {
            width = 0;
            n = hard_text(&r, (uint8_t *)room[i], n, 1);
            memcpy(utf8, room[i], n);
        }
        texts[i] = (sgt_text){room[i], n, width};
        at += sgt_encode(e, utf8, width ? random_text(&r, room[i], width, n, utf8) : n, want + at);
        want_ends[i] = at;
    }
    must(sgt_encode_texts(e, texts, COUNT, got, ends, why));
    cr_assert_arr_eq(ends, want_ends, sizeof ends);
    cr_assert_arr_eq(got, want, at * sizeof *got);
    texts[1].width = 3;
    expect_failure(sgt_encode_texts(e, texts, COUNT, got, ends, why), SGT_EUSAGE,
                   "width of a text 3: expected 0, 1, 2 or 4");
}

/* A pattern that backtracks beyond PCRE2's limits fails with its reason. */
Test(wide, a_failing_pattern)
{
    static char hard[40000];
    static uint16_t ids[sizeof hard];
    sgt_text text = {hard, sizeof hard, 0};
    scoped(sgt_vocab) *v = NULL;
    sgt_error err;
    size_t end;
    memset(hard, 'a', sizeof hard);
    must(sgt_vocab_load(&v, "gpt2", "(a+)+$|b", why));
    scoped(sgt_encoder) *e = new_encoder(v);
    hard[sizeof hard - 1] = 'c';
    int rc = sgt_encode_texts(e, &text, 1, ids, &end, &err);
    cr_assert_eq(rc, sgt_encoder_failure(e)->code);
    cr_assert_lt(rc, 0);
    cr_assert_str_eq(err.text, sgt_encoder_failure(e)->text);
}
