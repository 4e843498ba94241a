/* bpe32.c: encodes with 4-byte ids. */
#define SGT_WIDE
#include "tokenize/bpe/bpe.inc.h"
