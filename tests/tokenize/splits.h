/* splits.h: pieces of a text by each level of split.c that this machine has, for the tests. */
#ifndef SGT_TESTS_SPLITS_H
#define SGT_TESTS_SPLITS_H

#include <stdint.h>

#include "tokenize/text/pattern.h"

/* "ref" (the definition), "plain", "avx2", ...: NULL ends the list. Leaves base/cpu.h without a
 * limit. */
const char *const *split_levels(void);

/* Where the pieces of s[0..n) end, by that level, asked for at most `most` at a time; ends[] has
 * room for n. Returns how many there are. */
size_t pieces_by(const char *level, const uint8_t *s, size_t n, size_t most, size_t *ends);
size_t pieces_by_pattern(sgt_pattern *p, const uint8_t *s, size_t n, size_t *ends);

/* All levels, asked for `most` and for many pieces at a time, have those pieces, or the test fails
 * and shows the text. */
void hold_levels(const uint8_t *s, size_t n, size_t most, const size_t *want, size_t count,
                 const char *what);

#endif
