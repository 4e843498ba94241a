/* split_space.c: which bytes are white space, or may begin a longer white-space character. */
#include "tokenize/text/split_blocks.h"

const uint8_t sgt_split_space[256] = {['\t'] = 1, ['\n'] = 1, ['\v'] = 1, ['\f'] = 1, ['\r'] = 1,
                                      [' '] = 1,  [0xC2] = 2, [0xE1] = 2, [0xE2] = 2, [0xE3] = 2};
