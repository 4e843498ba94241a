/* words.h: a text that a checkpoint writes. */
#ifndef SGT_TOOLS_REPORT_WORDS_H
#define SGT_TOOLS_REPORT_WORDS_H

#include <stdint.h>

#include "base/error.h"

/* So many tokens at most from the end-of-text token on, into malloc'd *text (up to its first NUL):
 * what sgt-sample's defaults print, temperature 0.8 and top-k 200 with seed 1. The likeliest tokens
 * alone would be newlines of a young model. SGT_ESTOPPED when `stop` was raised. */
int report_words(char **text, const char *checkpoint, uint32_t tokens, const sgt_stop *stop,
                 sgt_error *err);

#endif
