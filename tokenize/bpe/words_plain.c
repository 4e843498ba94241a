/* words_plain.c: encodes words on any machine. */
#define ENCODE_WORDS sgt_words_plain
#include "tokenize/bpe/words.inc.h"
