/* normalize.h: text in Unicode's normal form C or KC (utf8proc), piece by piece: memory for the
 * text that comes out and for the longest extent without a boundary, time linear in the text.
 *
 *     sgt_normalizer z = {0};
 *     if (sgt_normalize_text(&z, SGT_NORMALIZE_NFC, s, n, &text, &count, &err) < 0) ...;
 *     sgt_normalizer_free(&z);
 *
 * Ill-formed units (utf8.h) are kept as they are, and what stands on either side is normalized by
 * itself, as it is beside U+FFFD. The Unicode version is that of the utf8proc at hand. */
#ifndef SGT_NORMALIZE_H
#define SGT_NORMALIZE_H

#include "sgt_tokenize.h"

/* Zeros to begin with. One thread at a time. */
typedef struct sgt_normalizer {
    uint8_t *text;
    size_t used, room;
    int32_t *points; /* of one extent, decomposed; then as many again to sort with */
    size_t count, point_room;
} sgt_normalizer;

void sgt_normalizer_free(sgt_normalizer *z);

/* *out is z's, or s where nothing changes, until the next call. */
int sgt_normalize_text(sgt_normalizer *z, sgt_normalize form, const uint8_t *s, size_t n,
                       const uint8_t **out, size_t *out_n, sgt_error *err);

/* Whether a text may be cut before this character: in both forms what stands before it and what
 * begins with it are normalized each by itself. Not known of every character for which it holds. */
int sgt_normalize_boundary(uint32_t cp);

/* Like sgt_split_cut, for text that is normalized before it is split by GPT-2's rule: before a
 * white-space character of ASCII that follows something else. Normalizing does not reach across
 * ASCII, and makes no white space at the end of what is none; and a piece of text never holds white
 * space after other characters. */
size_t sgt_normalize_cut(const uint8_t *text, size_t n);

#endif
