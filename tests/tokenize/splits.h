/* splits.h: the pieces of a text by each level of split.c that this machine has. */
#ifndef SGT_TESTS_SPLITS_H
#define SGT_TESTS_SPLITS_H

#include <stdint.h>

#include "tokenize/text/pattern.h"

/* Return the names of the levels, "plain", "avx2", ...; NULL ends the list. Call it without a limit of
 * sgt_cpu_limit. */
const char *const *split_levels(void);

/* Store the ends of the pieces of s[0..n) by an expression in ends[], which has room for n + 2. Return
 * their number. */
sgt_pattern *gpt2_pattern(void);
size_t pieces_by_pattern(sgt_pattern *p, const uint8_t *s, size_t n, size_t *ends);

/* Check that every level gives these pieces, with `most` pieces per call and with many. On failure,
 * show the text in hex. */
void hold_levels(const uint8_t *s, size_t n, size_t most, const size_t *want, size_t count,
                 const char *what);

#endif
