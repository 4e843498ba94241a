/* unicode.h: defines the character classes by which text is split: letter (\p{L}), number (\p{N}),
 * white space (\s) and other. For split rules that distinguish upper and lower case, it also
 * defines kinds, which divide the classes further.
 *
 * The classes are those of Unicode 16.0, which tiktoken 0.14 uses (regex-syntax 0.8.11). The tables
 * were generated with tiktoken, from the class of every code point, because newer versions of
 * Unicode also change the categories of existing characters (U+180E is no longer white space). The
 * classes do not come from the installed utf8proc, so that its version cannot change how text is
 * tokenized. tests/tokenize compares the tables with the installed utf8proc. */
#ifndef SGT_UNICODE_H
#define SGT_UNICODE_H

#include <stdint.h>

typedef enum sgt_class {
    SGT_CLASS_OTHER,
    SGT_CLASS_LETTER,
    SGT_CLASS_NUMBER,
    SGT_CLASS_SPACE
} sgt_class;

/* Kind of a character. Kinds divide the classes further: each general category of letters is a
 * kind; and of the class "other", marks (\p{M}), punctuation (\p{P}) and symbols (\p{S}) are kinds.
 */
typedef enum sgt_kind {
    SGT_KIND_OTHER,
    SGT_KIND_SPACE,
    SGT_KIND_NUMBER,
    SGT_KIND_MARK,
    SGT_KIND_LU,
    SGT_KIND_LT,
    SGT_KIND_LL,
    SGT_KIND_LM,
    SGT_KIND_LO,
    SGT_KIND_PUNCTUATION,
    SGT_KIND_SYMBOL,
    SGT_KINDS
} sgt_kind;

/* Tables of the classes of all characters (in unicode_tables.c). sgt_unicode_block maps a block of
 * 256 code points to the block's entry in sgt_unicode_classes. An entry has two bits per code
 * point: four code points in each byte, the first in the lowest bits. Blocks with equal classes
 * share an entry. */
extern const uint8_t sgt_unicode_block[0x1100];
extern const uint8_t sgt_unicode_classes[][64];
/* Tables of the kinds of all characters (in unicode_tables.c). sgt_unicode_kind_block maps a block
 * of 256 code points to the block's entry in sgt_unicode_kinds. An entry has four bits per code
 * point: two code points in each byte, the first in the low bits. Blocks with equal kinds share an
 * entry. */
extern const uint8_t sgt_unicode_kind_block[0x1100];
extern const uint8_t sgt_unicode_kinds[][128];

/* Tables of the classes of the characters below U+0800, for vector code, with one bit per code
 * point, lowest bit first. sgt_unicode_two_letter has a 1 for letters, sgt_unicode_two_rest for
 * numbers and white space. */
extern const uint8_t sgt_unicode_two_letter[256], sgt_unicode_two_rest[256];

/* Return the class of code point cp. If cp is above U+10FFFF, as it is for ill-formed UTF-8, return
 * SGT_CLASS_OTHER. */
static inline sgt_class sgt_unicode_class(uint32_t cp)
{
    if (cp > 0x10FFFF) return SGT_CLASS_OTHER;
    return (sgt_class)(sgt_unicode_classes[sgt_unicode_block[cp >> 8]][cp >> 2 & 63] >>
                           (2 * (cp & 3)) &
                       3);
}

/* Return the kind of code point cp. If cp is above U+10FFFF, as it is for ill-formed UTF-8, return
 * SGT_KIND_OTHER. */
static inline sgt_kind sgt_unicode_kind(uint32_t cp)
{
    if (cp > 0x10FFFF) return SGT_KIND_OTHER;
    return (sgt_kind)(sgt_unicode_kinds[sgt_unicode_kind_block[cp >> 8]][cp >> 1 & 127] >>
                          (4 * (cp & 1)) &
                      15);
}

#endif
