/* test_binary.c: which files count as binary data. */
#include <string.h>

#include "tokenize/input/corpus.h"
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
