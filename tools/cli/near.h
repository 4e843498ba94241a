/* near.h: suggests words that the user may have meant by an unknown word.
 *
 *     sgt_near near = sgt_near_to("bacth-size", 10);
 *     for (each known word) sgt_near_offer(&near, word, strlen(word));
 *     char hint[SGT_NEAR_HINT];
 *     sgt_near_hint(&near, "--", hint);   // "; did you mean --batch-size?", or "" */
#ifndef SGT_CLI_NEAR_H
#define SGT_CLI_NEAR_H

#include <stddef.h>

enum { SGT_NEAR_LENGTH = 48, SGT_NEAR_WORDS = 4, SGT_NEAR_HINT = 320 };

typedef struct sgt_near {
    const char *word; /* the unknown word */
    size_t length;
    /* known word with the fewest typing errors; NULL: every known word has too many */
    const char *nearest;
    size_t nearest_length, slips;
    /* whole: known words that begin with `word`; part: known words with a later part that does
     * (weight-decay for "decay"). If there are more than SGT_NEAR_WORDS, none is suggested. */
    struct sgt_near_words {
        const char *word[SGT_NEAR_WORDS];
        size_t length[SGT_NEAR_WORDS], count;
    } whole, part;
} sgt_near;

/* start with no known word; the pointer `word` is kept */
sgt_near sgt_near_to(const char *word, size_t length);
void sgt_near_offer(sgt_near *n, const char *word, size_t length);

/* Offer all words of a text in which they are separated by | or by commas and spaces. Only words
 * that begin with a small letter or a digit count; others are placeholders, such as FILE. */
void sgt_near_offer_all(sgt_near *n, const char *words);

/* Write the suggestion to hint, with `before` in front of each word, and return hint; it is "" if
 * no word was similar. */
const char *sgt_near_hint(const sgt_near *n, const char *before, char hint[SGT_NEAR_HINT]);

#endif
