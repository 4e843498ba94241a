/* long_words.h: encodes words that the table of words.h cannot hold: those of 16 bytes or more, and
 * shorter ones of many ids, such as runs of spaces. Words of up to 126 bytes are cached in a table
 * with their ids. A word of up to 512 bytes that is not in the table is cut wherever no token spans
 * the cut. Its parts are merged separately (scan.c, runs.h). Longer words are merged whole
 * (runs.h). */
#ifndef SGT_LONG_WORDS_H
#define SGT_LONG_WORDS_H

#include "tokenize/vocab/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SGT_LONG_WORDS_BYTES ((size_t)1 << 20) /* size of the table */

typedef struct sgt_long_words {
    const sgt_vocab *v;
    struct sgt_runs *runs;
    void *table; /* SGT_LONG_WORDS_BYTES bytes, zeroed */
} sgt_long_words;

/* Encode s[0..n), n > 0, into ids, which has room for n. Returns the number of ids. */
size_t sgt_encode_long(const sgt_long_words *l, const uint8_t *s, size_t n, uint16_t *ids);

#ifdef __cplusplus
}
#endif
#endif
