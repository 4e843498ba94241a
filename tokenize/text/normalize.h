/* normalize.h: converts text to Unicode normal form NFC or NFKC, using utf8proc. The Unicode
 * version is that of the installed utf8proc. The time is linear in the length of the text. Memory
 * is bounded by the output and by the longest extent: a section of text between two characters
 * before which text can be cut (sgt_normalize_boundary). Each extent is normalized separately.
 *
 *     sgt_normalizer z = {0};
 *     if (sgt_normalize_text(&z, SGT_NORMALIZE_NFC, s, n, &text, &count, &err) < 0) ...;
 *     sgt_normalizer_free(&z);
 *
 * Ill-formed units (utf8.h) are copied unchanged. The texts before and after such a unit are
 * normalized separately, as they are before and after U+FFFD. */
#ifndef SGT_NORMALIZE_H
#define SGT_NORMALIZE_H

#include "tokenize/sgt_tokenize.h"

/* Reusable memory for normalizing. Initialize it to zeros. Only one thread at a time may use it. */
typedef struct sgt_normalizer {
    uint8_t *text;
    size_t used, room;
    /* array of 2 * point_room elements: the decomposed code points of an extent (text that is
     * normalized as a unit), then scratch memory for sorting them */
    int32_t *points;
    size_t count, point_room;
} sgt_normalizer;

void sgt_normalizer_free(sgt_normalizer *z);

/* Normalize the n bytes at s. Set *out to s if nothing changes, else to the result in memory of z,
 * which is valid until the next call. Return 0 or SGT_ENOMEM. */
int sgt_normalize_text(sgt_normalizer *z, sgt_normalize form, const uint8_t *s, size_t n,
                       const uint8_t **out, size_t *out_n, sgt_error *err);

/* Return 1 if text may be cut before character cp: the two sides can then be normalized separately,
 * in NFC and in NFKC. The function may return 0 although a cut is possible. */
int sgt_normalize_boundary(uint32_t cp);

#endif
