/* bpe16.c: encodes with 2-byte ids. */
#include "tokenize/bpe/bpe.inc.h"
