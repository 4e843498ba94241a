/* words_avx2.c: encodes words (words.h) with AVX2 and BMI2. */
#include "tokenize/bpe/words.h"

#if defined(__x86_64__)
#define SGT_WORDS_LEVEL sgt_words_avx2
#define SGT_WORDS_NAME "avx2"
#include "tokenize/bpe/words.inc.h"
#endif
