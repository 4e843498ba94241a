/* runs.h: pieces of any length without a place to cut (a megabyte of one letter, of digits, of
 * random letters) in linear time. For bpe.c.
 *
 * Some tokens in a row are what the merges make of their bytes exactly where every two neighbours
 * are what the merges make of those two alone (each token being what they make of its own bytes,
 * which trie.c sees to). The proof: H. van Antwerpen, A. Neubeck, "So many tokens, so little time:
 * introducing a faster, more flexible byte-pair tokenizer" (GitHub, 2024). Two ways follow from it:
 *   steps    from left to right, always the longest token that may stand beside the last; where none leads on, the last
 *            is taken back for a shorter one
 *   windows  15 bytes at a time, each merged by itself, several side by side, every one 7 bytes on. Where a window and
 *            the next hold the same token at the same place, the tokens of the one up to there and those of the other
 *            from there on are neighbours somewhere: they fit. Twice as fast as steps where tokens are short. Where no
 *            token is in both, more bytes are merged at once, from up to four tokens before; and where that does not
 *            help either, it is steps for a while.
 *
 * 8 MB of random letters or digits: four fifths of the time is the merging of windows (some 110 ns
 * for one of 15 bytes, four side by side), 7 % that of what did not fit. A window each 6, 7, 8, 9
 * bytes: digits 55, 56, 49, 22 MB/s, letters 70, 82, 91, 93, ACGT 75, 86, 93, 88 (one thread, AMD
 * EPYC Zen 4, 2026-11-21). No table helps here, as nothing comes again. */
#ifndef SGT_RUNS_H
#define SGT_RUNS_H

#include "words.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SGT_RUN_MARKS 4096

typedef struct sgt_runs {
    const sgt_vocab *v;
    const sgt_words_level *level;
    /* (SGT_RUN_MARKS): places, counted over an encoder's life, from which no tokens lead to the
     * end */
    uint64_t *marks;
    uint64_t place; /* of the current piece's first byte; starts at 1 */
} sgt_runs;

/* Both: s[0..n), any bytes, into ids (room for n); how many. */
size_t sgt_runs_steps(sgt_runs *r, const uint8_t *s, size_t n, uint16_t *ids);
size_t sgt_runs_encode(sgt_runs *r, const uint8_t *s, size_t n, uint16_t *ids);

#ifdef __cplusplus
}
#endif
#endif
