/* oniguruma.h: translates patterns between Oniguruma, which Hugging Face's library uses, and PCRE2,
 * which sgt uses.
 *
 *     char *rule;
 *     // on failure, err says at which byte, and why
 *     if (sgt_pattern_translate(&rule, regex, SGT_FROM_ONIGURUMA, &err) < 0) ...;
 *
 * The two libraries read many patterns differently. In Oniguruma, ^ and $ match at line ends; here
 * they match at the ends of the text. \h is a hex digit in Oniguruma and a blank in PCRE2; \v is
 * one character in Oniguruma and any of seven in PCRE2. Oniguruma's (?m) is PCRE2's (?s). a{1,3}+
 * is (?:a{1,3})+ in Oniguruma and possessive in PCRE2. [a[b]] and && are set operations in
 * Oniguruma and plain characters in PCRE2.
 *
 * Whatever both libraries can express is translated. The rest is refused, and so is whatever is not
 * known to mean the same:
 *   - \w and \b, because each library has its own word characters
 *   - all properties but the general categories
 *   - non-ASCII letters if case is ignored (Oniguruma takes "ss" for U+00DF)
 *   - patterns that can match the empty string (Oniguruma splits there; PCRE2 is told to look for a
 *     longer match) */
#ifndef SGT_ONIGURUMA_H
#define SGT_ONIGURUMA_H

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sgt_translation { SGT_FROM_ONIGURUMA, SGT_TO_ONIGURUMA } sgt_translation;

/* Translate `pattern` into the other dialect. *out is malloc'd and the caller's to free; it has the
 * same bytes if both libraries read them alike. Returns 0, SGT_ENOMEM, or SGT_EUNSUPPORTED with a
 * message "at byte N: ..." that names the construct without an equivalent. An invalid pattern is
 * passed on, so that PCRE2 reports the mistake. */
int sgt_pattern_translate(char **out, const char *pattern, sgt_translation way, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
