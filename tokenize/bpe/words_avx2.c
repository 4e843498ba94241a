/* words_avx2.c: encodes words (words.h) with AVX2 and BMI2. */
#include "tokenize/bpe/words.h"

#if defined(__x86_64__)
#define ENCODE_WORDS sgt_words_avx2
#include "tokenize/bpe/words.inc.h"
#endif
