/* unicode.h: the three character classes of the split rule: letter (\p{L}), number (\p{N}), white
 * space (\s); and finer kinds, for rules that split by case.
 *
 * Pinned to Unicode 16.0, which tiktoken 0.14 follows (regex-syntax 0.8.11). The table is generated
 * by asking tiktoken about every code point. It covers all of them, because categories also change
 * for characters assigned long ago (U+180E stopped being white space). So utf8proc is not asked at
 * run time, and no version of it can change a token. tests/tokenize compares the table with the
 * installed utf8proc. */
#ifndef SGT_UNICODE_H
#define SGT_UNICODE_H

#include <stddef.h>
#include <stdint.h>

typedef enum sgt_class {
    SGT_CLASS_OTHER,
    SGT_CLASS_LETTER,
    SGT_CLASS_NUMBER,
    SGT_CLASS_SPACE
} sgt_class;

/* A character's kind: finer than its class. Letters are divided by general category, and marks
 * (\p{M}), which are of class "other", have a kind of their own. */
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
    SGT_KINDS
} sgt_kind;

/* Defined in unicode_tables.c: four code points to a byte, low bits first, in blocks of 256 code
 * points; equal blocks are stored once. */
extern const uint8_t sgt_unicode_block[0x1100];
extern const uint8_t sgt_unicode_classes[][64];
/* Kinds, stored in the same way, but two code points to a byte. */
extern const uint8_t sgt_unicode_kind_block[0x1100];
extern const uint8_t sgt_unicode_kinds[][128];

/* The classes of the characters below U+0800, arranged for vector code: one bit for each code point,
 * low bits first; letters, then numbers and white space. */
extern const uint8_t sgt_unicode_two_letter[256], sgt_unicode_two_rest[256];

/* Return the class of a code point. Values past U+10FFFF (ill-formed bytes) are SGT_CLASS_OTHER. */
static inline sgt_class sgt_unicode_class(uint32_t cp)
{
    if (cp > 0x10FFFF) return SGT_CLASS_OTHER;
    return (sgt_class)(sgt_unicode_classes[sgt_unicode_block[cp >> 8]][cp >> 2 & 63] >>
                           (2 * (cp & 3)) &
                       3);
}

/* Return the kind of a code point. Values past U+10FFFF are SGT_KIND_OTHER. */
static inline sgt_kind sgt_unicode_kind(uint32_t cp)
{
    if (cp > 0x10FFFF) return SGT_KIND_OTHER;
    return (sgt_kind)(sgt_unicode_kinds[sgt_unicode_kind_block[cp >> 8]][cp >> 1 & 127] >>
                          (4 * (cp & 1)) &
                      15);
}

#endif
