/* normalize.h: bring text to Unicode's normal form C or KC, through utf8proc. Time is linear in the
 * text. Memory is bounded by the output and by the longest extent without a boundary.
 *
 *     sgt_normalizer z = {0};
 *     if (sgt_normalize_text(&z, SGT_NORMALIZE_NFC, s, n, &text, &count, &err) < 0) ...;
 *     sgt_normalizer_free(&z);
 *
 * Ill-formed units (utf8.h) are copied unchanged. The texts before and after such a unit are
 * normalized separately, as they are before and after U+FFFD. The Unicode version is that of the
 * installed utf8proc. */
#ifndef SGT_NORMALIZE_H
#define SGT_NORMALIZE_H

#include "tokenize/sgt_tokenize.h"

/* Memory for normalizing. All zeros is an empty one. Only one thread at a time may use it. */
typedef struct sgt_normalizer {
    uint8_t *text;
    size_t used, room;
    /* code points of one decomposed extent, followed by as much room for sorting */
    int32_t *points;
    size_t count, point_room;
} sgt_normalizer;

void sgt_normalizer_free(sgt_normalizer *z);

/* Normalize s[0..n). *out points to z's memory, which is valid until the next call; or to s if
 * nothing changes. Return 0 or SGT_ENOMEM. */
int sgt_normalize_text(sgt_normalizer *z, sgt_normalize form, const uint8_t *s, size_t n,
                       const uint8_t **out, size_t *out_n, sgt_error *err);

/* Return whether text may be cut before this character. If so, the text before the cut and the text
 * after it can be normalized separately, both in NFC and in NFKC. The result may be 0 although a
 * cut is possible. */
int sgt_normalize_boundary(uint32_t cp);

#endif
