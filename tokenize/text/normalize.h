/* normalize.h: converts text to Unicode normal form NFC or NFKC, using utf8proc. The Unicode
 * version is that of the installed utf8proc. The text is cut before certain characters
 * (sgt_normalize_boundary), and each section between two cuts, called an extent, is normalized
 * separately. The time is linear in the length of the text. Memory is needed for the output and for
 * the longest extent.
 *
 *     sgt_normalizer z = {0};
 *     if (sgt_normalize_text(&z, SGT_NORMALIZE_NFC, s, n, &text, &count, &err) < 0) ...;
 *     sgt_normalizer_free(&z);
 *
 * Ill-formed UTF-8 is copied unchanged. The text before an ill-formed sequence and the text after
 * it are normalized separately, as if the sequence were U+FFFD. */
#ifndef SGT_NORMALIZE_H
#define SGT_NORMALIZE_H

#include "tokenize/sgt_tokenize.h"

/* Buffers for sgt_normalize_text, which can be reused for any number of texts. The caller sets all
 * fields to 0 first. Only one thread at a time may use an sgt_normalizer. */
typedef struct sgt_normalizer {
    uint8_t *text;
    size_t used, room;
    /* array of 2 * point_room code points: the first half holds the decomposed text of one extent
     * (a section that is normalized by itself), the second half is scratch memory for sorting */
    int32_t *points;
    size_t count, point_room;
} sgt_normalizer;

void sgt_normalizer_free(sgt_normalizer *z);

/* Convert the n bytes at s to the normal form `form`. Set *out to the result, and *out_n to its
 * length in bytes. *out is either s (only possible if the result equals the input), or a buffer of
 * z, which is valid until the next call. Return 0 or SGT_ENOMEM. */
int sgt_normalize_text(sgt_normalizer *z, sgt_normalize form, const uint8_t *s, size_t n,
                       const uint8_t **out, size_t *out_n, sgt_error *err);

/* Return 1 if the text before character cp and the text from cp on can be normalized separately (in
 * NFC and in NFKC), whatever these texts are. The function can return 0 even if this is
 * possible. */
int sgt_normalize_boundary(uint32_t cp);

#endif
