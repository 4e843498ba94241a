/* divide.h: how the ranks of one run divide the inputs, and how they divide the second pass, which
 * makes the shards of OUT from all parts.
 *
 *     sgt_share s = {.index = rank, .count = ranks};
 *     for (i = sgt_share_first(&s, n, s.index); i < sgt_share_first(&s, n, s.index + 1); i++)
 *         ...;                              // our share of n things
 *
 * Ranks that were started apart (--rank and --ranks) may run one after the other: the rank that
 * finds all parts complete does the whole second pass. Its share is 0 of 1. */
#ifndef SGT_DIVIDE_H
#define SGT_DIVIDE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"

/* ---- shares ---- */

/* Limit of `count`, because a rank has SGT_SHARE_PIECES files open for each share. A rank with a
 * number from there on has an empty share. */
#define SGT_SHARE_MOST 128

#define SGT_SHARE_PIECES 4 /* pieces of work for each share, at least */

typedef struct sgt_share {
    uint32_t index, count; /* index >= count: an empty share */
    uint32_t ranks; /* number of ranks with the shares; more than `count` if some are empty */
    /* bytes of memory for documents that are read from the parts in any order; 0: none, because the
     * ranks run on several machines */
    uint64_t memory;
} sgt_share;

/* Return the index of the first of n things that are in share `index`, or in a later one. */
static inline uint64_t sgt_share_first(const sgt_share *s, uint64_t n, uint64_t index)
{
    const uint64_t i = index < s->count ? index : s->count;
    return n / s->count * i + n % s->count * i / s->count;
}

/* Return `pieces`, a power of two, or enough times as many that the shares are about equal. */
static inline size_t sgt_share_pieces(const sgt_share *s, size_t pieces)
{
    while (s->count > 1 && pieces < (size_t)SGT_SHARE_PIECES * s->count) pieces *= 2;
    return pieces;
}

/* ---- dividing the inputs: by their bytes. A rank has files that follow each other. A Parquet file on
 * the border between two ranks is cut there, and each rank reads the row groups on its side; any other
 * file belongs to one rank as a whole.
 *
 *     sgt_cut *cuts = calloc(ranks + 1, sizeof *cuts);
 *     sgt_divide(c, ranks, cuts);
 *     if (sgt_divide_any(cuts, rank)) sgt_divide_take(&mine, c, cuts, rank, &err);
 *     free(mine.files); ---- */

/* Where a rank's share begins, and that of the rank before ends. */
typedef struct sgt_cut {
    size_t file;
    uint64_t byte; /* of the file, if it is cut; 0: at its beginning */
} sgt_cut;

/* Set cuts[ranks + 1]: rank i has what lies from cuts[i] to cuts[i + 1], perhaps nothing. Only the
 * files' sizes decide, so all ranks compute the same cuts. */
void sgt_divide(const sgt_corpus *c, uint32_t ranks, sgt_cut *cuts);

static inline int sgt_divide_any(const sgt_cut *cuts, uint32_t rank)
{
    return cuts[rank].file != cuts[rank + 1].file || cuts[rank].byte != cuts[rank + 1].byte;
}

/* Make the corpus of a rank's share, which is not empty. The caller frees mine->files, an array;
 * all else belongs to c. */
int sgt_divide_take(sgt_corpus *mine, const sgt_corpus *c, const sgt_cut *cuts, uint32_t rank,
                    sgt_error *err);

#endif
