/* split_levels.h: the implementations of sgt_split, for split.c and its tests. All give the same
 * pieces. */
#ifndef SGT_SPLIT_LEVELS_H
#define SGT_SPLIT_LEVELS_H

#include "tokenize/text/split.h"

/* the definition: one character at a time */
size_t sgt_split_ref(sgt_splitter *s, uint32_t *ends, size_t max);
size_t sgt_split_plain(sgt_splitter *s, uint32_t *ends, size_t max);
#if defined(__x86_64__)
size_t sgt_split_avx2(sgt_splitter *s, uint32_t *ends, size_t max);
size_t sgt_split_avx512(sgt_splitter *s, uint32_t *ends, size_t max); /* requires sgt_cpu_vbmi2() */
#endif

#endif
