/* words.h: text that a checkpoint writes. */
#ifndef SGT_TOOLS_REPORT_WORDS_H
#define SGT_TOOLS_REPORT_WORDS_H

#include <stdint.h>

#include "loader/base/error.h"

/* Generate at most `tokens` tokens from the end-of-text token into malloc'd *text (up to its first
 * NUL), with sgt-sample's defaults: temperature 0.8, top-k 200, seed 1. A young model's likeliest
 * tokens alone would all be newlines. Returns SGT_ESTOPPED if `stop` was raised. */
int report_words(char **text, const char *checkpoint, uint32_t tokens, const sgt_stop *stop,
                 sgt_error *err);

#endif
