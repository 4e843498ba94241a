/* oniguruma.h: a pattern of Hugging Face's, which Oniguruma matches, as one of ours, which PCRE2
 * matches; and back.
 *
 *     char *rule;
 *     if (sgt_pattern_translate(&rule, regex, SGT_FROM_ONIGURUMA, &err) < 0) ...;   // err: at which byte, and why
 *
 * The two libraries read many patterns differently. ^ and $ are the ends of a line in Oniguruma and
 * of the text here, \h is a hex digit or a blank, \v one character or seven, (?m) is what (?s) is
 * here, a{1,3}+ is (?:a{1,3})+ or possessive, and [a[b]] and && are sets of sets or plain
 * characters. What both can say is translated. What is left is refused, and so is whatever is not
 * known to be the same: \w and \b (each library has its own word characters), all properties but
 * the general categories, letters past ASCII where case is ignored (Oniguruma takes "ss" for
 * U+00DF), and patterns that can match nothing (Oniguruma splits there, PCRE2 is made to look for a
 * longer match). */
#ifndef SGT_ONIGURUMA_H
#define SGT_ONIGURUMA_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sgt_translation { SGT_FROM_ONIGURUMA, SGT_TO_ONIGURUMA } sgt_translation;

/* `pattern` in the other dialect, malloc'd: the same bytes where both read them alike. 0,
 * SGT_ENOMEM, or SGT_EUNSUPPORTED: "at byte N: ..." says what has no equal. A pattern that is wrong
 * is handed on, for PCRE2 to say how. */
int sgt_pattern_translate(char **out, const char *pattern, sgt_translation way, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
