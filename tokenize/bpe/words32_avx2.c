/* words32_avx2.c: encodes words to 4-byte ids (words.h) with AVX2 and BMI2. */
#define SGT_WIDE
#include "tokenize/bpe/words.h"

#if defined(__x86_64__)
#define ENCODE_WORDS sgt_words32_avx2
#include "tokenize/bpe/words.inc.h"
#endif
