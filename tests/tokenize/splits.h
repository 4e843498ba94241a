/* splits.h: the pieces of a text by a rule (NULL: GPT-2's), split by PCRE2 and by each level of split.c
 * that this machine has. */
#ifndef SGT_TESTS_SPLITS_H
#define SGT_TESTS_SPLITS_H

#include <stdint.h>

#include "tokenize/text/pattern.h"
#include "tokenize/text/split.h"

/* Return the names of the levels, "plain", "avx2", ...; NULL ends the list. Call it without a limit of
 * sgt_cpu_limit. */
const char *const *split_levels(void);

/* Return a rule's expression; the caller frees it. */
sgt_pattern *pattern_of(const sgt_rule *r);

/* Store the ends of the pieces of s[0..n) by an expression in ends[], which has room for n. Return their
 * number. */
size_t pieces_by_pattern(sgt_pattern *p, const uint8_t *s, size_t n, size_t *ends);

/* The same by a level, or by "ref": one character at a time, by a rule that is not GPT-2's. Take `most`
 * pieces (at most 400) per call. cuts: where to cut pieces in parts; NULL: nowhere. */
size_t pieces_by(const sgt_rule *r, const char *level, const sgt_cuts *cuts, const uint8_t *s,
                 size_t n, size_t most, size_t *ends);

/* Check that every level gives these pieces, with `most` pieces per call and with many. On failure,
 * show the text in hex. */
void hold_levels(const sgt_rule *r, const uint8_t *s, size_t n, size_t most, const size_t *want,
                 size_t count, const char *what);

#endif
