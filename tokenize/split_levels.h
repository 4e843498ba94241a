/* split_levels.h: sgt_split by vectors, for split.c. x86-64 only. */
#ifndef SGT_SPLIT_LEVELS_H
#define SGT_SPLIT_LEVELS_H

#include "split.h"

size_t sgt_split_avx2(sgt_splitter *s, uint32_t *ends, size_t max);
size_t sgt_split_avx512(sgt_splitter *s, uint32_t *ends, size_t max); /* where sgt_cpu_vbmi2() */

#endif
