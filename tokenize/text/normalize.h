/* normalize.h: text in Unicode's normal form C or KC, through utf8proc. Time is linear in the text.
 * Memory is bounded by the output and the longest extent without a boundary.
 *
 *     sgt_normalizer z = {0};
 *     if (sgt_normalize_text(&z, SGT_NORMALIZE_NFC, s, n, &text, &count, &err) < 0) ...;
 *     sgt_normalizer_free(&z);
 *
 * Ill-formed units (utf8.h) are copied unchanged. The text on either side of one is normalized
 * separately, as beside U+FFFD. The Unicode version is that of the installed utf8proc. */
#ifndef SGT_NORMALIZE_H
#define SGT_NORMALIZE_H

#include "tokenize/sgt_tokenize.h"

/* Starts as all zeros. Only one thread may use it at a time. */
typedef struct sgt_normalizer {
    uint8_t *text;
    size_t used, room;
    int32_t *points; /* code points of one decomposed extent, then as much room for sorting */
    size_t count, point_room;
} sgt_normalizer;

void sgt_normalizer_free(sgt_normalizer *z);

/* Normalize s[0..n). *out points to z's memory, valid until the next call, or to s if nothing
 * changes. Returns 0, or SGT_ENOMEM. */
int sgt_normalize_text(sgt_normalizer *z, sgt_normalize form, const uint8_t *s, size_t n,
                       const uint8_t **out, size_t *out_n, sgt_error *err);

/* Return whether text may be cut before this character. If so, the text before the cut and the text
 * after it can be normalized separately, in NFC and in NFKC. May return 0 for a character that
 * would allow a cut. */
int sgt_normalize_boundary(uint32_t cp);

#endif
