/* divide.h: divides the inputs of a run among its ranks (processes), by bytes. Each rank reads
 * consecutive files. If the border between two ranks lies inside a file, one of the two ranks reads
 * the entire file. If it is a Parquet file, each of the two ranks instead reads the row groups on
 * its side of the border.
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

/* Border between the inputs of two ranks: a position in the corpus, before which one rank stops
 * reading and at which the next rank begins. file: index of the file in the corpus. */
typedef struct sgt_cut {
    size_t file;
    /* offset in the file in bytes; 0 if the border is at the beginning of the file */
    uint64_t byte;
} sgt_cut;

/* Compute the borders between the ranks' inputs and store them in cuts[0] ... cuts[ranks]. Rank i
 * reads the inputs from cuts[i] up to cuts[i + 1]; if the two are equal, it reads none. The result
 * depends only on the sizes of the files and on `ranks`, so it is the same in all ranks. */
void sgt_divide(const sgt_corpus *c, uint32_t ranks, sgt_cut *cuts);

static inline int sgt_divide_any(const sgt_cut *cuts, uint32_t rank)
{
    return cuts[rank].file != cuts[rank + 1].file || cuts[rank].byte != cuts[rank + 1].byte;
}

/* Set *mine to a corpus that contains only the inputs of rank `rank`, which must have at least one.
 * The caller frees the array mine->files; everything else to which *mine points belongs to c. */
int sgt_divide_take(sgt_corpus *mine, const sgt_corpus *c, const sgt_cut *cuts, uint32_t rank,
                    sgt_error *err);

#endif
