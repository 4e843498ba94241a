/* divide.h: how the ranks of one run divide the inputs among themselves: by bytes. The files of a
 * rank follow each other in the corpus. A Parquet file on the border between two ranks is cut
 * there, and each rank reads the row groups on its side. Any other file belongs to one rank as a
 * whole.
 *
 *     sgt_cut *cuts = calloc(ranks + 1, sizeof *cuts);
 *     sgt_divide(c, ranks, cuts);
 *     if (sgt_divide_any(cuts, rank)) sgt_divide_take(&mine, c, cuts, rank, &err);
 *     free(mine.files); */
#ifndef SGT_DIVIDE_H
#define SGT_DIVIDE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"

/* The position in the corpus at which a rank's share begins and the share of the rank before
 * ends. */
typedef struct sgt_cut {
    size_t file;
    uint64_t byte; /* byte of the file at which it is cut; 0: its beginning */
} sgt_cut;

/* Set cuts[ranks + 1]: rank i has the files from cuts[i] to cuts[i + 1], possibly none. Only the
 * files' sizes decide, so all ranks compute the same cuts. */
void sgt_divide(const sgt_corpus *c, uint32_t ranks, sgt_cut *cuts);

static inline int sgt_divide_any(const sgt_cut *cuts, uint32_t rank)
{
    return cuts[rank].file != cuts[rank + 1].file || cuts[rank].byte != cuts[rank + 1].byte;
}

/* Set *mine to the corpus of a rank's share, which must not be empty. The caller frees the array
 * mine->files; everything else in it belongs to c. */
int sgt_divide_take(sgt_corpus *mine, const sgt_corpus *c, const sgt_cut *cuts, uint32_t rank,
                    sgt_error *err);

#endif
