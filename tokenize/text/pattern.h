/* pattern.h: splits text by a regular expression with PCRE2 (in UTF mode, with its JIT if the
 * system allows it). It runs every pattern but GPT-2's, and tests compare split.h with it.
 *
 *     sgt_pattern *p;
 *     if (sgt_pattern_new(&p, pattern, &err) < 0) ...;
 *     sgt_splitter sp = sgt_pattern_splitter(p, text, n, &err);   // then as split.h says
 *     ...
 *     if (sp.at < n) ...;                                         // err says why it failed
 *     sgt_pattern_free(p);
 *
 * Pieces are the successive matches and the extents between them that nothing matches. Laid end to
 * end, they are the text. Ill-formed units (utf8.h) are matched as U+FFFD and keep their bytes.
 * Only one thread may use a pattern at a time. */
#ifndef SGT_PATTERN_H
#define SGT_PATTERN_H

#include "loader/base/error.h"
#include "tokenize/text/split.h"

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

void sgt_pattern_free(sgt_pattern *p); /* NULL is fine */

/* Return a splitter of text[0..n) by a pattern, which has one splitter at a time. The caller must
 * keep the text and *why until the last piece. If memory runs out, or the pattern backtracks
 * beyond PCRE2's limits (GPT-2's never does), sgt_split returns 0 before the end of the text, and
 * *why is filled in. */
sgt_splitter sgt_pattern_splitter(sgt_pattern *p, const void *text, size_t n, sgt_error *why);

#endif
