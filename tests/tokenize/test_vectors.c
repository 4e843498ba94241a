/* test_vectors.c: the ids that tiktoken gives, recorded by tests/data/make_tokenize_vectors.py, for
 * every code point in every context, for some texts, and for long runs; and the classes of characters. */
#include <stdlib.h>
#include <string.h>

#include "tests/tokenize/common.h"
#include "tokenize/text/unicode.h"

/* make_tokenize_vectors.py has the same list, in the same order; @ stands for the code point. */
static const char *const contexts[] = {"@",          " @",   "  @",    "a@",           "@a", "1@1",
                                       "'@",         "@'s",  "!@!",    "\n@",          "@ ", "@  @",
                                       "e@\xCC\x81", " '@@", "@\n\n@", "\xE4\xB8\xAD@"};

static uint32_t block_crc(sgt_encoder *e, uint32_t block)
{
    uint32_t crc = 0;
    for (uint32_t i = 0; i < 256; i++)
        for (size_t c = 0; c < sizeof contexts / sizeof *contexts; c++) {
            uint8_t text[32];
            uint16_t ids[32];
            size_t n = put_context(text, contexts[c], block << 8 | i);
            crc = crc32_of(crc, ids, encode(e, text, n, ids) * sizeof *ids);
        }
    return crc;
}

Test(vectors, every_code_point_in_every_context)
{
    scoped(sgt_vocab) *v = gpt2();
    scoped(sgt_encoder) *e = new_encoder(v);
    scoped(FILE) *f = fopen(VECTORS "blocks.txt", "r");
    unsigned block, crc, lines = 0;
    cr_assert(f, "no " VECTORS "blocks.txt: tests run from the project's root");
    for (; fscanf(f, "%x %x", &block, &crc) == 2; lines++)
        cr_assert_eq(block_crc(e, block), crc, "tiktoken tokenizes U+%04X00-U+%04XFF otherwise",
                     block, block);
    cr_assert_eq(lines, 0x1100 - 8);
}

Test(vectors, cases)
{
    scoped(sgt_vocab) *v = gpt2();
    scoped(sgt_encoder) *e = new_encoder(v);
    size_t n, lines = 0;
    char *all = whole_file(VECTORS "cases.txt", &n), *rest = all;
    for (char *line; (line = strsep(&rest, "\n")) && (*line || rest); lines++) {
        uint8_t text[512];
        uint16_t ids[512];
        char *want = strchr(line, '\t') + 1;
        size_t count = encode(e, text, from_hex(line, text), ids);
        for (size_t i = 0; i < count; i++) {
            cr_assert(*want, "case %zu has fewer ids than %zu: %s", lines, count, line);
            cr_assert_eq(strtoul(want, &want, 10), ids[i], "case %zu, id %zu is %u: %s", lines, i,
                         ids[i], line);
        }
        cr_assert(!*want, "case %zu has more ids than %zu: %s", lines, count, line);
    }
    cr_assert_gt(lines, 2900);
    free(all);
}

Test(vectors, long_runs)
{
    scoped(sgt_vocab) *v = gpt2();
    scoped(sgt_encoder) *e = new_encoder(v);
    scoped(FILE) *f = fopen(VECTORS "long.txt", "r");
    size_t times, count, lines = 0;
    unsigned crc;
    char hex[8192];
    cr_assert(f);
    for (; fscanf(f, "%zu %8191s %zu %x", &times, hex, &count, &crc) == 4; lines++) {
        uint8_t unit[4096];
        size_t n = from_hex(hex, unit);
        scoped_memory uint8_t *text = malloc(n * times);
        scoped_memory uint16_t *ids = malloc(n * times * sizeof *ids);
        for (size_t i = 0; i < times; i++) memcpy(text + i * n, unit, n);
        cr_assert_eq(encode(e, text, n * times, ids), count, "%zu times %.40s", times, hex);
        cr_assert_eq(crc32_of(0, ids, count * sizeof *ids), crc, "%zu times %.40s", times, hex);
    }
    cr_assert_eq(lines, 103);
}

#define POINTS 0x110000

Test(unicode, table_is_the_one_tiktoken_decided)
{
    /* the expected values are the CRC-32 of one byte per code point, and the number of code points
     * in each class. tests/data/make_tokenize_vectors.py --classes printed them */
    scoped_memory uint8_t *all = malloc(POINTS);
    size_t count[4] = {0};
    for (uint32_t cp = 0; cp < POINTS; cp++) count[all[cp] = (uint8_t)sgt_unicode_class(cp)]++;
    cr_assert_eq(count[SGT_CLASS_LETTER], 141028);
    cr_assert_eq(count[SGT_CLASS_NUMBER], 1911);
    cr_assert_eq(count[SGT_CLASS_SPACE], 25);
    cr_assert_eq(crc32_of(0, all, POINTS), 0xCEFAB67Du, "%08x", crc32_of(0, all, POINTS));
}
