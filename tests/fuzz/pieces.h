/* pieces.h: where pieces of text end, by a regular expression and by a splitter. */
#ifndef SGT_FUZZ_PIECES_H
#define SGT_FUZZ_PIECES_H

#include "tests/fuzz/fuzz.h"
#include "tokenize/text/pattern.h"
#include "tokenize/text/split.h"

enum { SOME = 7 }; /* most pieces per call, few so that calls begin at many places */

/* Return the ends of the n bytes' pieces by the expression, which the caller frees, and their
 * number. */
static size_t *pattern_ends(sgt_pattern *p, const uint8_t *text, size_t n, size_t *count)
{
    sgt_error err;
    size_t *ends = malloc((n + SOME) * sizeof *ends);
    int got;
    must(ends != NULL, "there is memory");
    must(sgt_pattern_start(p, text, n, &err) == 0, "the expression takes any text");
    *count = 0;
    while ((got = sgt_pattern_split(p, ends + *count, SOME, &err)) > 0) *count += (size_t)got;
    must(got == 0, "the expression comes to an end");
    return ends;
}

/* Store the ends of a splitter's pieces; `from` is added to each. Return their number. */
static size_t ends_of(sgt_splitter sp, size_t from, size_t *ends)
{
    uint32_t some[SOME];
    size_t count = 0, got;
    for (size_t at = from; (got = sgt_split(&sp, some, SOME)) > 0; at = ends[count - 1])
        for (size_t i = 0; i < got; i++) ends[count++] = at + some[i];
    return count;
}

#endif
