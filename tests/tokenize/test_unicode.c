/* test_unicode.c: character classes. The table agrees with what was recorded from tiktoken, and
 * with the installed utf8proc, as far as its Unicode version allows. */
#include <stdlib.h>
#include <utf8proc.h>

#include "tests/tokenize/common.h"
#include "tokenize/text/unicode.h"
#include "tokenize/text/utf8.h"

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

Test(unicode, what_lies_past_the_last_code_point_is_other)
{
    cr_assert_eq(sgt_unicode_class(POINTS), SGT_CLASS_OTHER);
    cr_assert_eq(sgt_unicode_class(SGT_UTF8_ILL_FORMED), SGT_CLASS_OTHER);
}

/* The tables for vector code agree with the classes. */
Test(unicode, tables_for_vectors_agree)
{
    for (uint32_t cp = 0; cp < 0x800; cp++) {
        sgt_class class = sgt_unicode_class(cp);
        cr_assert_eq(sgt_unicode_two_letter[cp >> 3] >> (cp & 7) & 1, class == SGT_CLASS_LETTER,
                     "U+%04X", cp);
        cr_assert_eq(sgt_unicode_two_rest[cp >> 3] >> (cp & 7) & 1,
                     class == SGT_CLASS_NUMBER || class == SGT_CLASS_SPACE, "U+%04X", cp);
    }
}

static sgt_class class_by_utf8proc(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return SGT_CLASS_LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return SGT_CLASS_NUMBER;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return SGT_CLASS_SPACE;
    default: return (cp >= 9 && cp <= 13) || cp == 0x85 ? SGT_CLASS_SPACE : SGT_CLASS_OTHER;
    }
}

/* A utf8proc of Unicode 16 agrees with the table. An older one does not know some characters yet
 * (category Cn), and a newer one knows some that the table has as "other". Any further difference
 * is an error in the table or in utf8proc. */
Test(unicode, differs_from_utf8proc_only_where_versions_may)
{
    unsigned older = 0, newer = 0;
    double version = strtod(utf8proc_unicode_version(), NULL);
    for (uint32_t cp = 0; cp < POINTS; cp++) {
        sgt_class ours = sgt_unicode_class(cp), theirs = class_by_utf8proc(cp);
        if (ours == theirs) continue;
        if (utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_CN) older++;
        else if (ours == SGT_CLASS_OTHER) newer++;
        else cr_assert_fail("U+%04X: class %d, by utf8proc %d", cp, ours, theirs);
    }
    if (version <= 16)
        cr_assert_eq(newer, 0, "Unicode %.1f gives %u characters a class that ours lacks", version,
                     newer);
    if (version >= 16)
        cr_assert_eq(older, 0, "Unicode %.1f does not know %u characters that we do", version,
                     older);
    if (version == 15) cr_assert_eq(older, 5004, "%u", older);
}
