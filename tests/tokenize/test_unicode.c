/* test_unicode.c: the classes of characters are those recorded from tiktoken. */
#include <stdlib.h>

#include "tests/tokenize/common.h"
#include "tokenize/text/unicode.h"

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
