/* split_levels.h: the implementations of sgt_split, for splitter.c and tests. All give the same
 * pieces. */
#ifndef SGT_SPLIT_LEVELS_H
#define SGT_SPLIT_LEVELS_H

#include "tokenize/text/split.h"

/* the definition: one character at a time */
size_t sgt_split_ref(sgt_splitter *s, uint32_t *ends, size_t max);
size_t sgt_split_plain(sgt_splitter *s, uint32_t *ends, size_t max);

/* the rules of rules.h: one character at a time, and by blocks */
size_t sgt_split_rule(sgt_splitter *s, uint32_t *ends, size_t max);
size_t sgt_split_rule_plain(sgt_splitter *s, uint32_t *ends, size_t max);
/* Split one character at a time up to s->hard. From there on, blocks of 64 bytes can be split
 * again. */
size_t sgt_split_rule_hard(sgt_splitter *s, uint32_t *ends, size_t max);
/* Return the length of the contraction at s, or 0; s[0] is a quote. */
size_t sgt_rule_contraction(const uint8_t *s, size_t n);
/* Return whether s begins with white space, and its length in *len. */
int sgt_rule_is_space(const uint8_t *s, size_t n, size_t *len);
#if defined(__x86_64__)
size_t sgt_split_rule_avx2(sgt_splitter *s, uint32_t *ends, size_t max);
/* requires sgt_cpu_vbmi2() */
size_t sgt_split_rule_avx512(sgt_splitter *s, uint32_t *ends, size_t max);
size_t sgt_split_avx2(sgt_splitter *s, uint32_t *ends, size_t max);
size_t sgt_split_avx512(sgt_splitter *s, uint32_t *ends, size_t max); /* requires sgt_cpu_vbmi2() */
#endif

#endif
