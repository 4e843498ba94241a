/* near.h: what somebody may have meant by a word that is not there.
 *
 *     sgt_near near = sgt_near_to("bacth-size", 10);
 *     for (each word that is there) sgt_near_offer(&near, word, strlen(word));
 *     char hint[SGT_NEAR_HINT];
 *     sgt_near_hint(&near, "--", hint);     // "; did you mean --batch-size?", or "" where nothing is near */
#ifndef SGT_CLI_NEAR_H
#define SGT_CLI_NEAR_H

#include <stddef.h>

enum { SGT_NEAR_LENGTH = 48, SGT_NEAR_WORDS = 4, SGT_NEAR_HINT = 320 };

typedef struct sgt_near {
    const char *word; /* what was said */
    size_t length;
    const char *nearest; /* the word of fewest slips, of those few enough */
    size_t nearest_length, slips;
    struct sgt_near_words { /* where there are more, none is named */
        const char *word[SGT_NEAR_WORDS];
        size_t length[SGT_NEAR_WORDS], count;
    } whole,
        part; /* words of which it is the beginning, and those of which it begins a part: batch, decay */
} sgt_near;

sgt_near sgt_near_to(const char *word, size_t length); /* which is kept by address */
void sgt_near_offer(sgt_near *n, const char *word, size_t length);

/* All words of a text in which they are separated by | or commas and spaces: those that begin with
 * a small letter or a digit, which stand for themselves. */
void sgt_near_offer_all(sgt_near *n, const char *words);

/* Into hint, which it returns: "" where nothing was near. `before` stands before each word. */
const char *sgt_near_hint(const sgt_near *n, const char *before, char hint[SGT_NEAR_HINT]);

#endif
