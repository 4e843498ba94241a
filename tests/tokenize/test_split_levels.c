/* test_split_levels.c: the splitter gives the pre-tokens of the regular expression at every CPU
 * level. Texts have every pair of difficult strings at every offset in a block of 64 bytes, and lie
 * between inaccessible pages. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/expect.h"
#include "tests/tokenize/common.h"
#include "tests/tokenize/splits.h"
#include "tokenize/text/split.h"

#define PAGE 4096

/* Return a readable page between two inaccessible ones. */
static uint8_t *page_between_guards(void)
{
    uint8_t *p = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(p != MAP_FAILED && mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
    return p + PAGE;
}

/* Compare all levels with the regular expression. The text lies at the end of the page, and then at
 * its beginning. */
static void hold_to_definition(uint8_t *page, const uint8_t *text, size_t n, size_t most,
                               const char *what)
{
    static size_t want[PAGE];
    static sgt_pattern *p;
    if (!p) p = pattern_of(NULL);
    size_t count = pieces_by_pattern(p, text, n, want);
    memcpy(page + PAGE - n, text, n);
    hold_levels(NULL, page + PAGE - n, n, most, want, count, what);
    memcpy(page, text, n);
    hold_levels(NULL, page, n, most, want, count, what);
}

enum { BITS = 91 };
static char table[] =
    /* white space */
    "~ ~  ~   ~\n~\r\n~\t ~ \t~\xC2\x85~\xC2\xA0~ \xC2\xA0~\xC2\xA0 ~\xE1\x9A\x80~\xE2\x80\x83~"
    "\xE2\x80\x83\xC2\xA0~\xE2\x81\x9F~\xE3\x80\x80~\xE3\x80\x80 ~"
    /* contractions, ASCII */
    "'~''~ '~'s~'t~'ll~'ve~'re~'l~'v~'r~'m'd~'sl~'llx~'LL~'lv~s~ll~ve~e~x~the~A~7~2024~!~...~"
    "\x7F~\x1C~"
    /* two bytes: letters, numbers, marks */
    "\xC3\xA9~\xC2\xB2~\xC2\xAA~\xC3\x97~\xCD\x85~\xD0\xB6~\xD9\xA3~\xDB\xB9~\xDF\x80~\xD9\x8B~"
    /* three bytes */
    "\xE4\xB8\xAD~\xE4\xB7\x80~\xE3\x81\x82~\xE3\x80\x81~\xE3\x80\x87~\xEA\xB0\x80~\xED\x9E\xA3~"
    "\xED\x9E\xA4~\xE0\xB8\x81~\xE0\xB8\xB1~\xE2\x80\x99s~\xE2\x91\xA0~\xE1\xA0\x8E~"
    "\xEF\xBF\xBD~\xEF\xBC\x91~"
    /* four bytes */
    "\xF0\x9F\x98\x80~\xF0\xA0\x80\x80~\xF0\x9D\x9F\x8E~\xF4\x8F\xBF\xBF~"
    /* ill-formed bytes */
    "\x80~\xBF\xBF~\xC2~\xC1\x81~\xE0\x81\x81~\xE0\x9F\xBF~\xE4\xB8~\xE3\x80~\xED\xA0\x80~"
    "\xED\xB0\xB0~\xF0\x9F\x98~\xF0\x8F\xBF\xBF~\xF4\x90\x80\x80~\xF5\x80\x80\x80~\xFF";
static char *bits[BITS];

static void split_table(void) { cr_assert_eq(strings_of(bits, BITS, table, "~"), BITS); }

TestSuite(split_levels, .init = split_table);

static size_t put(uint8_t *text, size_t n, const char *s)
{
    memcpy(text + n, s, strlen(s));
    return n + strlen(s);
}

Test(split_levels, every_two_bits_about_a_border)
{
    uint8_t *page = page_between_guards(), text[256];
    for (size_t place = 56; place < 66; place++)
        for (size_t i = 0; i < BITS; i++)
            for (size_t j = 0; j < BITS; j++) {
                size_t n = place - strlen(bits[i]);
                memset(text, "a 7-"[j % 4], n);
                n = put(text, put(text, n, bits[i]), bits[j]);
                if (i % 2)
                    n = put(text, put(text, n, bits[(i * 31 + j * 17 + place) % BITS]), "word");
                hold_to_definition(page, text, n, 1 + place % 5, "two bits");
            }
}

/* Random sequences of these strings, at every offset in a block, and cut off anywhere. */
Test(split_levels, many_bits_at_every_place)
{
    uint8_t *page = page_between_guards(), text[1024];
    uint64_t seed = test_seed();
    rng r = {seed, 0};
    char what[64];
    sprintf(what, "SEED=%llu", (unsigned long long)seed);
    for (int i = 0; i < 20000; i++) {
        size_t n = (size_t)i % 64, want = n + below(&r, 300),
               from = below(&r, 3) ? 0 : below(&r, BITS);
        /* choose from all strings, or from a few neighbours in the list */
        size_t kinds = from ? 1 + below(&r, 6) : BITS;
        memset(text, 'x', n);
        while (n < want) n = put(text, n, bits[(from + below(&r, (uint32_t)kinds)) % BITS]);
        hold_to_definition(page, text, n - below(&r, 4) % (n + 1), 1 + below(&r, 80), what);
    }
}

/* Sequences of three and four bytes, for every first and second byte: these two index the tables of
 * the vector code. */
Test(split_levels, every_first_and_second_byte)
{
    uint8_t *page = page_between_guards(), text[512];
    static const uint8_t ends[] = {0x80, 0x8A, 0x9F, 0xA0, 0xA9, 0xBF, 0x7F, 0xC2};
    for (unsigned first = 0xC0; first < 0x100; first++)
        for (unsigned second = 0x7F; second <= 0xC0; second++) {
            size_t n = (first * 7 + second * 5) % 64;
            memset(text, ' ', n);
            for (size_t i = 0; i < sizeof ends; i++) {
                const uint8_t a = (uint8_t)first, b = (uint8_t)second, last = ends[i];
                const uint8_t c[] = {a, b, last, 0x80, 'a', a, b, last, '1'};
                memcpy(text + n, c, sizeof c);
                n += sizeof c;
            }
            hold_to_definition(page, text, n, 7, "first and second bytes");
        }
}

/* A pre-token of more than 4 GiB, for which s->at needs more than 32 bits. The text is one page of
 * zeros, mapped many times. */
Test(split_levels, a_piece_of_more_than_four_gibibytes)
{
    size_t n = ((size_t)1 << 32) + 3 * PAGE;
    uint8_t *text =
        mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (text == MAP_FAILED) cr_skip_test("no room for 4 GiB of addresses");
    madvise(text, n, MADV_HUGEPAGE);
    memcpy(text, "one two", 7);
    memcpy(text + n - 6, " three", 6);
    sgt_splitter s = sgt_splitter_by(NULL, text, n);
    uint32_t ends[100];
    cr_assert_eq(sgt_split(&s, ends, 100), 2);
    cr_assert_eq(ends[0], 3);
    cr_assert_eq(ends[1], 7);
    cr_assert_eq(sgt_split(&s, ends, 100), 1);
    cr_assert_eq(ends[0], UINT32_MAX);
    cr_assert_eq(s.at, n - 6);
    cr_assert_eq(sgt_split(&s, ends, 100), 1);
    cr_assert_eq(ends[0], 6);
    cr_assert_eq(s.at, n);
    cr_assert_eq(sgt_split(&s, ends, 100), 0);
    munmap(text, n);
}
