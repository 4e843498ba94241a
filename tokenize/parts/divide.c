/* divide.c: decides which files and Parquet row groups each rank reads. */
#include "tokenize/parts/divide.h"

#include <stdlib.h>
#include <string.h>

/* Number of bytes that could be read in the time that it takes to open a file. It is added to the
 * size of each file, so that a rank that reads many small files gets fewer bytes to read. */
#define FILE_COST 4096

void sgt_divide(const sgt_corpus *c, uint32_t ranks, sgt_cut *cuts)
{
    /* use long double, which on x86-64 and AArch64 represents all 64-bit integers exactly */
    const long double all = (long double)c->bytes + (long double)c->count * FILE_COST;
    long double before = 0; /* cost of the files before file i */
    size_t i = 0;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const long double at = all * rank / ranks;
        cuts[rank].byte = 0;
        for (; i < c->count; i++) {
            const sgt_corpus_file *f = &c->files[i];
            const long double cost = (long double)f->size + FILE_COST, in = at - before;
            if (f->rows && in > 0 && in <= cost)
                cuts[rank].byte = (uint64_t)(in / cost * (long double)f->size);
            if (in <= (f->rows ? cost : cost / 2)) break;
            before += cost;
        }
        cuts[rank].file = i;
    }
    cuts[ranks] = (sgt_cut){.file = c->count};
}

int sgt_divide_take(sgt_corpus *mine, const sgt_corpus *c, const sgt_cut *cuts, uint32_t rank,
                    sgt_error *err)
{
    const sgt_cut from = cuts[rank], to = cuts[rank + 1];
    *mine = *c;
    mine->count = to.file + (to.byte > 0) - from.file;
    mine->files = malloc(mine->count * sizeof *mine->files);
    if (!mine->files) return sgt_fail_memory(err, "the files of a rank");
    memcpy(mine->files, c->files + from.file, mine->count * sizeof *mine->files);
    mine->files[0].from = from.byte;
    if (to.byte) mine->files[mine->count - 1].end = to.byte;
    mine->bytes = mine->line_files = 0;
    for (size_t i = 0; i < mine->count; i++) {
        mine->bytes += sgt_corpus_share(&mine->files[i]);
        mine->line_files += mine->files[i].lines || mine->files[i].rows;
    }
    return SGT_OK;
}
