/* runs.h: encodes pieces of any length that cannot be cut (a megabyte of one letter, of digits, of
 * random letters), in linear time. For bpe.c.
 *
 * A row of tokens is what the merges make of its bytes exactly if every two adjacent tokens are
 * what the merges make of those two alone: they "fit". (Each token must be what the merges make of
 * its own bytes, which trie.c ensures.) The proof is in H. van Antwerpen, A. Neubeck, "So many
 * tokens, so little time: introducing a faster, more flexible byte-pair tokenizer" (GitHub, 2024).
 * Two methods follow from it:
 *   steps    From left to right, take the longest token that fits behind the last one. If none
 *            leads on, replace the last token by a shorter one.
 *   windows  Merge windows of 15 bytes, several side by side, each starting 7 bytes after the one
 *            before. If a window and the next hold the same token at the same place, join them:
 *            tokens up to it from the first, tokens after it from the second. All of these are
 *            adjacent in one of the windows, so they fit. If no token is in both, merge more
 *            bytes at once, from up to four tokens before. If that fails too, take steps for a
 *            while. Windows are twice as fast as steps if tokens are short.
 *
 * In 8 MB of random letters or digits, merging windows takes four fifths of the time (some 110 ns a
 * window, when four are merged side by side). Merging again what did not fit takes 7 %. With a
 * window each 6, 7, 8, 9 bytes: digits 55, 56, 49, 22 MB/s, letters 70, 82, 91, 93, ACGT 75, 86,
 * 93, 88 (one thread, AMD EPYC Zen 4, 2026-11-21). A table of known words would not help, because
 * nothing repeats. */
#ifndef SGT_RUNS_H
#define SGT_RUNS_H

#include "tokenize/bpe/words.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SGT_RUN_MARKS 4096

typedef struct sgt_runs {
    const sgt_vocab *v;
    const sgt_words_level *level;
    /* (SGT_RUN_MARKS): places from which no tokens lead to the end of a piece. Places count the
     * bytes of all pieces that this encoder has met */
    uint64_t *marks;
    uint64_t place; /* place of the first byte of the current piece; the first is 1 */
} sgt_runs;

/* Encode s[0..n), any bytes, into ids, which has room for n. Return the number of ids. */
size_t sgt_runs_steps(sgt_runs *r, const uint8_t *s, size_t n, uint16_t *ids);
size_t sgt_runs_encode(sgt_runs *r, const uint8_t *s, size_t n, uint16_t *ids);

#ifdef __cplusplus
}
#endif
#endif
