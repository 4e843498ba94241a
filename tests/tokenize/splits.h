/* splits.h: split a text into pre-tokens ("pieces") by a rule (NULL: GPT-2's), with PCRE2, or with
 * split.c at each CPU level that this machine has. */
#ifndef SGT_TESTS_SPLITS_H
#define SGT_TESTS_SPLITS_H

#include <stdint.h>

#include "tokenize/text/pattern.h"
#include "tokenize/text/split.h"

/* Return the names of the CPU levels, "plain", "avx2", ...; NULL ends the list. Call it while
 * sgt_cpu_limit sets no limit. */
const char *const *split_levels(void);

/* Compile a rule's regular expression; the caller frees it. */
sgt_pattern *pattern_of(const sgt_rule *r);

/* Split s[0..n) by a regular expression. Store the end of each piece in ends[], which has room for
 * n. Return the number of pieces. */
size_t pieces_by_pattern(sgt_pattern *p, const uint8_t *s, size_t n, size_t *ends);

/* Do the same with split.c at a CPU level, or, for rules other than GPT-2's, with "ref", which
 * splits one character at a time. Request `most` pieces (at most 400) per call. cuts: where to cut
 * pieces into parts; NULL: nowhere. */
size_t pieces_by(const sgt_rule *r, const char *level, const sgt_cuts *cuts, const uint8_t *s,
                 size_t n, size_t most, size_t *ends);

/* Check that every level gives the `count` pieces whose ends are in want[], both with `most` pieces
 * per call and with many. On failure, show the text in hex. */
void hold_levels(const sgt_rule *r, const uint8_t *s, size_t n, size_t most, const size_t *want,
                 size_t count, const char *what);

#endif
