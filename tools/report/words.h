/* words.h: generates text with a checkpoint. */
#ifndef SGT_TOOLS_REPORT_WORDS_H
#define SGT_TOOLS_REPORT_WORDS_H

#include <stdint.h>

#include "loader/base/error.h"

/* Generate at most `tokens` tokens after the end-of-text token, and set *text to their text,
 * malloc'd (up to its first NUL). Tokens are chosen with sgt-sample's defaults: temperature 0.8,
 * top-k 200, seed 1. (If a model is little trained, its likeliest tokens would all be newlines.)
 * Returns SGT_ESTOPPED if `stop` was requested. */
int report_words(char **text, const char *checkpoint, uint32_t tokens, const sgt_stop *stop,
                 sgt_error *err);

#endif
