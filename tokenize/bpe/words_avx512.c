/* words_avx512.c: encodes words with AVX-512. */
#include "tokenize/bpe/words.h"

#if defined(__x86_64__)
#define ENCODE_WORDS sgt_words_avx512
#include "tokenize/bpe/words.inc.h"
#endif
