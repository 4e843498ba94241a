/* pattern.h: splits text by a regular expression with PCRE2 (in UTF mode, with its JIT if the
 * system allows it). It runs every pattern but GPT-2's, and tests compare split.h with it.
 *
 *     sgt_pattern *p;
 *     if (sgt_pattern_new(&p, pattern, &err) < 0 || sgt_pattern_start(p, text, n, &err) < 0) ...;
 *     size_t ends[256], from = 0;
 *     int count;
 *     while ((count = sgt_pattern_split(p, ends, 256, &err)) > 0)
 *         for (int i = 0; i < count; from = ends[i++]) use(text + from, ends[i] - from);
 *     sgt_pattern_free(p);
 *
 * Pieces are the successive matches and the extents between them that nothing matches. Laid end to
 * end, they are the text. Ill-formed units (utf8.h) are matched as U+FFFD and keep their bytes.
 * Only one thread may use a pattern at a time. */
#ifndef SGT_PATTERN_H
#define SGT_PATTERN_H

#include <stddef.h>

#include "loader/base/error.h"

/* GPT-2's rule as a regular expression */
#define SGT_PIECE_RULE \
    "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

typedef struct sgt_pattern sgt_pattern;

/* Compile any PCRE2 pattern (UTF-8). \s, \p{L}, \p{N}, \p{M}, \p{Lu}, \p{Lt}, \p{Ll}, \p{Lm},
 * \p{Lo} and their complements are replaced by unicode.h's, which are tiktoken's (PCRE2 has its own
 * Unicode version, and treats U+180E as white space). All other classes, \w and \d among them, are
 * PCRE2's own, by Unicode properties; in a pattern with (?x), all classes are. $ matches at the end
 * of the text only. SGT_EUSAGE says what is wrong with the pattern and where. */
int sgt_pattern_new(sgt_pattern **out, const char *pattern, sgt_error *err);

/* Return whether a pattern is GPT-2's rule in one of the forms that OpenAI and Hugging Face write.
 * If so, split.h can be used instead. */
int sgt_pattern_is_gpt2(const char *pattern);
void sgt_pattern_free(sgt_pattern *p); /* NULL is fine */

/* Start splitting text[0..n). The caller must keep the text unchanged until the last piece. */
int sgt_pattern_start(sgt_pattern *p, const void *text, size_t n, sgt_error *err);

/* Find the next pieces: ends[i] is the offset just past piece i. Returns the number of pieces, 0 at
 * the end, or a negative SGT_E* if the pattern backtracks beyond PCRE2's limits (GPT-2's never
 * does). */
int sgt_pattern_split(sgt_pattern *p, size_t *ends, int max, sgt_error *err);

#endif
