/* divide.h: divides the inputs of a run among its ranks (processes), by bytes. Each rank reads
 * consecutive files. A file at the border between two ranks is read by one of them as a whole,
 * unless it is a Parquet file: each of the two ranks then reads the row groups on its side of the
 * border.
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

/* A cut between the ranges of two ranks: a position in the corpus at which one rank stops reading
 * and the next rank begins. file: index of the file. */
typedef struct sgt_cut {
    size_t file;
    uint64_t byte; /* offset in the file in bytes; 0 if the cut is before the file */
} sgt_cut;

/* Compute cuts[ranks + 1]. Rank i reads the inputs from cuts[i] to cuts[i + 1]; there may be none.
 * All ranks compute the same cuts, which depend only on the files' sizes and the number of
 * ranks. */
void sgt_divide(const sgt_corpus *c, uint32_t ranks, sgt_cut *cuts);

static inline int sgt_divide_any(const sgt_cut *cuts, uint32_t rank)
{
    return cuts[rank].file != cuts[rank + 1].file || cuts[rank].byte != cuts[rank + 1].byte;
}

/* Set *mine to the inputs that a rank reads, as a separate corpus. The rank must have some. The
 * caller frees the array mine->files; everything else in *mine belongs to c. */
int sgt_divide_take(sgt_corpus *mine, const sgt_corpus *c, const sgt_cut *cuts, uint32_t rank,
                    sgt_error *err);

#endif
