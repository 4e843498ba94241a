/* words_avx512.c: encodes words with AVX-512. */
#include "tokenize/bpe/words.h"

#if defined(__x86_64__)
#define SGT_WORDS_LEVEL sgt_words_avx512
#define SGT_WORDS_NAME "avx512"
#include "tokenize/bpe/words.inc.h"
#endif
