/* test_binary.c: which files count as binary data, and which file goes to the val split if the hash
 * picks none. */
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "tokenize/input/corpus.h"
#include "tokenize/input/feed.h"
#include "tests/tokenize/common.h"

static const char *what(const char *bytes, size_t n, int whole, int lines)
{
    const sgt_magic *b = sgt_binary_of((const uint8_t *)bytes, n, whole, lines);
    return b ? b->what : "text";
}

/* tests/cli/forms.sh has the other kinds of files. */
Test(binary, told_by_its_first_bytes)
{
#define IS(bytes, said) cr_assert_str_eq(what(bytes, sizeof bytes - 1, 1, 0), said)
    IS("", "text");
    IS("%PDF-1.4", "a PDF");
    IS("%PD", "text");
    IS(" %PDF", "text");
    IS("PK\5\6", "a ZIP archive");
    IS("PK", "text");
    IS("\050\265\057\375", "Zstandard data");
    IS("\377\376a\0", "UTF-16");
    IS("\376\377\0a", "UTF-16");
    IS("\377\376a", "text"); /* an odd number of bytes */
    IS("\377\376a\0\0", "binary data");
    IS("\0", "text");
    IS("a\0b\303\251\0", "text");
    IS("\377\200\300", "text");
    IS("\0\377", "binary data");
    IS("\355\240\200\0", "binary data"); /* 0xED 0xA0 0x80 is a surrogate */
#undef IS
    cr_assert_str_eq(what("%PDF", 4, 1, 1), "a PDF");
    /* JSONL is not searched for binary bytes: its parser reports them */
    cr_assert_str_eq(what("\0\377", 2, 1, 1), "text");
    cr_assert_str_eq(what("\377\376a\0", 4, 1, 1), "text");
}

/* The prefix that is examined may end within a character: that is not ill-formed. A byte that
 * cannot begin a character is. */
Test(binary, characters_cut_by_the_prefix)
{
    static const char *const begun[] = {"\303", "\342",     "\342\202",
                                        "\360", "\360\237", "\360\237\230"};
    static const char *const wrong[] = {"\200",     "\300",  "\365",        "\340\200",
                                        "\355\240", "\303a", "\360\200\200"};
    char text[8] = {0};
    for (size_t i = 0; i < 6; i++) {
        size_t n = strlen(begun[i]);
        memcpy(text + 1, begun[i], n);
        cr_assert_str_eq(what(text, n + 1, 0, 0), "text", "%zu", i);
        cr_assert_str_eq(what(text, n + 1, 1, 0), "binary data", "%zu", i);
    }
    for (size_t i = 0; i < 7; i++) {
        size_t n = strlen(wrong[i]);
        memcpy(text + 1, wrong[i], n);
        cr_assert_str_eq(what(text, n + 1, 0, 0), "binary data", "%zu", i);
    }
}

Test(binary, one_file_of_several_is_set_aside)
{
    sgt_corpus_file files[9] = {{0}};
    char names[9][8];
    sgt_corpus c = {.files = files, .count = 9};
    for (int i = 0; i < 9; i++) {
        /* the last file has the same name as the first, and therefore the same hash */
        sprintf(names[i], "%d", i % 8);
        files[i].name = names[i];
    }
    int least = 0, picked = 0;
    sgt_text_feed_choose(&c, 1e-9);
    for (int i = 0; i < 9; i++)
        if (XXH3_64bits(files[i].name, 1) < XXH3_64bits(files[least].name, 1)) least = i;
    for (int i = 0; i < 9; i++) cr_assert_eq(files[i].val, i == least, "%d", i);
    files[least].val = 0;
    for (int i = 0; i < 9; i++) picked += sgt_text_feed_split(names[i], 0, .5);
    cr_assert_gt(picked, 0);
    sgt_text_feed_choose(&c, .5); /* the hash picks some files, so no other is added */
    sgt_text_feed_choose(&c, 0);
    c.line_files = 1, sgt_text_feed_choose(&c, 1e-9), c.line_files = 0;
    c.stream = 1, sgt_text_feed_choose(&c, 1e-9), c.stream = 0;
    c.count = 1, sgt_text_feed_choose(&c, 1e-9);
    for (int i = 0; i < 9; i++) cr_assert_eq(files[i].val, 0);
}
