/* divide.h: divides the inputs of a run among its ranks, by bytes. Each rank reads consecutive
 * files of the corpus. A Parquet file at the border between two ranks is divided, and each of the
 * two reads the row groups on its side. Any other file is read by one rank as a whole.
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

/* Compute cuts[ranks + 1]: rank i reads the inputs from cuts[i] to cuts[i + 1], which may be none.
 * The cuts depend only on the files' sizes and the number of ranks, so all ranks compute the same
 * cuts. */
void sgt_divide(const sgt_corpus *c, uint32_t ranks, sgt_cut *cuts);

static inline int sgt_divide_any(const sgt_cut *cuts, uint32_t rank)
{
    return cuts[rank].file != cuts[rank + 1].file || cuts[rank].byte != cuts[rank + 1].byte;
}

/* Set *mine to the share of corpus c that a rank reads, as a corpus of its own. The share must not
 * be empty. The caller frees the array mine->files; everything else in *mine belongs to c. */
int sgt_divide_take(sgt_corpus *mine, const sgt_corpus *c, const sgt_cut *cuts, uint32_t rank,
                    sgt_error *err);

#endif
