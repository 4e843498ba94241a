/* pattern.h: splitting by a regular expression through PCRE2 (UTF, JIT where the system lets it
 * compile): the second opinion on split.h, and the way any other pattern is split by.
 *
 *     sgt_pattern *p;
 *     if (sgt_pattern_gpt2(&p, &err) < 0 || sgt_pattern_start(p, text, n, &err) < 0) ...;
 *     size_t ends[256], from = 0;
 *     int count;
 *     while ((count = sgt_pattern_split(p, ends, 256, &err)) > 0)
 *         for (int i = 0; i < count; from = ends[i++]) use(text + from, ends[i] - from);
 *     sgt_pattern_free(p);
 *
 * Pieces are the matches one after another, and the extents between them that nothing matches: laid
 * end to end they are the text. Ill-formed units (utf8.h) are matched as U+FFFD and keep their
 * bytes. One thread at a time per pattern. */
#ifndef SGT_PATTERN_H
#define SGT_PATTERN_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* GPT-2's rule, as its expression says it. */
#define SGT_PIECE_RULE \
    "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

typedef struct sgt_pattern sgt_pattern;

/* GPT-2's rule, with \s, \p{L} and \p{N} spelled out from unicode.h's table: PCRE2 has its own
 * Unicode version, and takes U+180E for white space. */
int sgt_pattern_gpt2(sgt_pattern **out, sgt_error *err);

/* Any PCRE2 pattern (UTF-8). \s, \S, \p{L}, \P{L}, \p{N} and \P{N} are unicode.h's, as tiktoken has
 * them; every other class is PCRE2's own, by Unicode properties (\w and \d too), and so are those
 * of a pattern with (?x). $ is the end of the text alone. SGT_EUSAGE says what is wrong with it and
 * where. */
int sgt_pattern_new(sgt_pattern **out, const char *pattern, sgt_error *err);

/* Whether a pattern is GPT-2's rule in one of the ways that OpenAI and Hugging Face write it:
 * split.h does as well. */
int sgt_pattern_is_gpt2(const char *pattern);
void sgt_pattern_free(sgt_pattern *p); /* NULL is fine */

/* Starts on text[0..n), which must stay as it is until the last piece. */
int sgt_pattern_start(sgt_pattern *p, const void *text, size_t n, sgt_error *err);

/* The next pieces: ends[i] is the offset just past piece i. Returns how many, 0 at the end, or a
 * negative SGT_E* (a pattern that backtracks beyond PCRE2's limits; never GPT-2's). */
int sgt_pattern_split(sgt_pattern *p, size_t *ends, int max, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
