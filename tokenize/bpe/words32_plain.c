/* words32_plain.c: encodes words to 4-byte ids on any machine. */
#define SGT_WIDE
#define ENCODE_WORDS sgt_words32_plain
#include "tokenize/bpe/words.inc.h"
