/* words32_avx512.c: encodes words to 4-byte ids with AVX-512. */
#define SGT_WIDE
#include "tokenize/bpe/words.h"

#if defined(__x86_64__)
#define ENCODE_WORDS sgt_words32_avx512
#include "tokenize/bpe/words.inc.h"
#endif
