/* test_pattern.c: patterns without a rule of their own, which PCRE2 splits. test_rules.c checks that
 * the splitter gives the pre-tokens of PCRE2. */
#include <string.h>

#include "tests/expect.h"
#include "tests/tokenize/common.h"
#include "tests/tokenize/splits.h"
#include "tokenize/text/pattern.h"

static void pieces_are(const char *pattern, const char *text, const char *want)
{
    scoped(sgt_pattern) *p = NULL;
    char got[256] = "";
    must(sgt_pattern_new(&p, pattern, why));
    size_t ends[64], from = 0,
                     count = pieces_by_pattern(p, (const uint8_t *)text, strlen(text), ends);
    for (size_t i = 0; i < count; from = ends[i++])
        strncat(strcat(got, "|"), text + from, ends[i] - from);
    cr_assert_str_eq(got, want);
}

Test(pattern, what_nothing_matches_is_a_piece_too)
{
    pieces_are("\\d+", "ab12c3", "|ab|12|c|3");
    pieces_are("\\d+", "12ab", "|12|ab");
    pieces_are("\\d+", "none", "|none");
    pieces_are("\\d*", "a1", "|a|1");
    pieces_are("x", "", "");
    pieces_are("\\x{FFFD}+|[a-z]+", "ab\xFF\xF0\x9F\xFFx", "|ab|\xFF\xF0\x9F\xFF|x");
}

Test(pattern, classes_are_our_tables_and_the_rest_of_the_syntax_stays)
{
    pieces_are("\\p{L}+", "ab\u00E9\U0001DF2Ac1", "|ab\u00E9\U0001DF2Ac|1");
    pieces_are("\\p{L}+", "x\U00010D4Ay", "|x\U00010D4Ay"); /* a letter since Unicode 16 */
    /* U+180E is not white space (since Unicode 6.3) */
    pieces_are("\\s+", "a \u180E\u3000b", "|a| |\u180E|\u3000|b");
    pieces_are("[^\\s\\p{L}]+", "ab1 2!", "|ab|1| |2!");
    pieces_are("[\\S]+", "ab \u00E9", "|ab| |\u00E9");
    pieces_are("\\P{L}+", "ab12c", "|ab|12|c");
    pieces_are("\\p{^N}+|\\pN", "ab12", "|ab|1|2");
    pieces_are("[]\\s]+", "a] b", "|a|] |b");
    pieces_are("[[:digit:]\\s]+", "a1 b", "|a|1 |b");
    pieces_are("\\Q\\s[\\E+", "\\s[[\\s", "|\\s[[|\\s");
    pieces_are("(?#[)\\s", "a b", "|a| |b");
    pieces_are("(?i)X\\p{L}\\d", "xa1", "|xa1");
    pieces_are("(?x) \\s # [ space\n| b", "a b", "|a| |b");
    pieces_are("a$", "aa\na\n", "|aa\na\n"); /* $ does not match before the last newline */
    pieces_are("a$", "aa\na", "|aa\n|a");
    pieces_are("\\w+", "\u00E9t\u00E9 1", "|\u00E9t\u00E9| |1");
}

Test(pattern, says_what_is_wrong_and_where)
{
    scoped(sgt_pattern) *p = NULL;
    expect_failure(sgt_pattern_new(&p, "ab(c", why), SGT_EUSAGE,
                   "pattern: at byte 4: missing closing parenthesis");
    cr_assert_null(p);
    must(sgt_pattern_new(&p, "(*LIMIT_MATCH=10)(a+)+$", why));
    sgt_error err = {0};
    sgt_splitter sp = sgt_pattern_splitter(p, "aaaaaaaaaaaaaaaaaaaaaaaab", 25, &err);
    uint32_t end;
    cr_assert(!sgt_split(&sp, &end, 1) && !sp.at);
    cr_assert_eq(err.code, SGT_EUNSUPPORTED);
    cr_assert_str_eq(err.text, "pattern: at byte 0 of the text: match limit exceeded");
}
