/* words_plain.c: encodes words on any machine. */
#define SGT_WORDS_LEVEL sgt_words_plain
#define SGT_WORDS_NAME "plain"
#include "tokenize/bpe/words.inc.h"
