/* pattern.h: splits text by a regular expression with PCRE2 (in UTF mode, with its JIT if the
 * system allows it). It is used for patterns that split.c has no code for, and in tests, which
 * compare the pieces of both. Only one thread at a time may use an sgt_pattern.
 *
 *     sgt_pattern *p;
 *     if (sgt_pattern_new(&p, pattern, &err) < 0) ...;
 *     sgt_splitter sp = sgt_pattern_splitter(p, text, n, &err);   // then as in split.h
 *     ...
 *     if (sp.at < n) ...;                                         // err says why it failed
 *     sgt_pattern_free(p);
 *
 * The pieces are the successive matches and the sections of text between them, so together they are
 * the entire text. Each sequence of ill-formed UTF-8 is matched as if it were U+FFFD, but the
 * pieces contain its original bytes. */
#ifndef SGT_PATTERN_H
#define SGT_PATTERN_H

#include "loader/base/error.h"
#include "tokenize/text/split.h"

/* GPT-2's split rule as a PCRE2 regular expression */
#define SGT_PIECE_RULE \
    "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

typedef struct sgt_pattern sgt_pattern;

/* Compile a PCRE2 pattern in UTF-8. If the pattern is invalid, return SGT_EUSAGE with a message
 * that says what is wrong, and at which byte. In the pattern, $ matches only at the end of the
 * text.
 *
 * The classes \s, \p{L}, \p{N}, \p{M}, \p{Lu}, \p{Lt}, \p{Ll}, \p{Lm}, \p{Lo} and their complements
 * are replaced by the classes of unicode.h, which equal those of tiktoken. (PCRE2's own classes
 * differ, because it has a different Unicode version and treats U+180E as white space.) If the
 * pattern has the flag x, as in (?x), no class is replaced. Other classes, such as \w and \d, are
 * PCRE2's own and use Unicode properties. */
int sgt_pattern_new(sgt_pattern **out, const char *pattern, sgt_error *err);

void sgt_pattern_free(sgt_pattern *p); /* NULL is allowed */

/* Return a splitter that splits the n bytes at `text` by the pattern p. The text and *why must stay
 * valid as long as the splitter is used, and p can have only one splitter at a time. If memory runs
 * out, or if matching exceeds PCRE2's limits for backtracking, sgt_split fills in *why and returns
 * 0 before the end of the text. (GPT-2's pattern never exceeds the limits.) */
sgt_splitter sgt_pattern_splitter(sgt_pattern *p, const void *text, size_t n, sgt_error *why);

#endif
