/* divide.c: which files and row groups each rank reads. */
#include "tokenize/parts/divide.h"

#include <stdlib.h>
#include <string.h>

#include "tokenize/input/parquet.h"

#define FILE_COST 4096 /* bytes of text that take about as long as opening a file */

/* Shares are computed in long double, which holds 64 bits. */
typedef struct division {
    uint32_t ranks, rank; /* rank: the last one whose beginning is known */
    long double all;      /* cost of all files */
    long double before;   /* cost of the files before this one */
    sgt_cut *cuts;
} division;

/* Return the rank in whose share `at` is; the end is in the last one's. */
static uint32_t whose(const division *d, long double at)
{
    const uint32_t rank = (uint32_t)(at * d->ranks / d->all);
    return rank < d->ranks ? rank : d->ranks - 1;
}

/* Give what begins at the cut, and has its middle at `middle`, to the rank in whose share that
 * is. */
static void give(division *d, long double middle, sgt_cut at)
{
    const uint32_t to = whose(d, middle);
    while (d->rank < to && d->rank + 1 < d->ranks) d->cuts[++d->rank] = at;
}

static int cut_file(division *d, const sgt_corpus *c, size_t i, const sgt_stop *stop,
                    sgt_error *err)
{
    const sgt_corpus_file *f = &c->files[i];
    const sgt_parquet_request r = {.file = f, .field = c->field, .stop = stop};
    const long double cost = (long double)f->size + FILE_COST;
    sgt_parquet *p;
    int rc = sgt_parquet_open(&p, &r, err);
    if (rc < 0) return rc;
    const size_t count = sgt_parquet_groups(p);
    uint64_t row, all, bytes, next;
    sgt_parquet_group_begin(p, count, &row, &all);
    for (size_t g = 0; g < count; g++) {
        sgt_parquet_group_begin(p, g + 1, &row, &next);
        sgt_parquet_group_begin(p, g, &row, &bytes);
        const long double part = all ? cost / (long double)all : 0;
        const sgt_cut at = {i, row, (uint64_t)((long double)bytes * part)};
        give(d, d->before + part * ((long double)bytes + (long double)next) / 2, at);
    }
    sgt_parquet_close(p);
    return SGT_OK;
}

int sgt_divide(const sgt_corpus *c, uint32_t ranks, sgt_cut *cuts, const sgt_stop *stop,
               sgt_error *err)
{
    division d = {.ranks = ranks,
                  .all = (long double)c->bytes + (long double)c->count * FILE_COST,
                  .cuts = cuts};
    int rc = SGT_OK;
    cuts[0] = (sgt_cut){0};
    for (size_t i = 0; i < c->count && !rc; i++) {
        const long double cost = (long double)c->files[i].size + FILE_COST;
        if (c->files[i].rows && whose(&d, d.before) != whose(&d, d.before + cost))
            rc = cut_file(&d, c, i, stop, err);
        else give(&d, d.before + cost / 2, (sgt_cut){.file = i});
        d.before += cost;
    }
    while (d.rank < ranks) cuts[++d.rank] = (sgt_cut){.file = c->count};
    return rc;
}

int sgt_divide_cuts(const sgt_cut *cuts, uint32_t ranks)
{
    int any = 0;
    for (uint32_t i = 0; i <= ranks; i++) any |= cuts[i].row > 0;
    return any;
}

int sgt_divide_take(sgt_corpus *mine, const sgt_corpus *c, const sgt_cut *cuts, uint32_t rank,
                    sgt_error *err)
{
    const sgt_cut from = cuts[rank], to = cuts[rank + 1];
    *mine = *c;
    mine->count = to.file + (to.row > 0) - from.file;
    mine->files = malloc(mine->count * sizeof *mine->files);
    if (!mine->files) return sgt_fail_memory(err, "the files of a rank");
    memcpy(mine->files, c->files + from.file, mine->count * sizeof *mine->files);
    sgt_corpus_file *first = mine->files, *last = &mine->files[mine->count - 1];
    first->from_row = from.row;
    if (to.row) {
        last->end_row = to.row;
        last->share = to.bytes;
    }
    if (from.row) first->share = (first->share ? first->share : first->size) - from.bytes;
    mine->bytes = mine->line_files = 0;
    for (size_t i = 0; i < mine->count; i++) {
        mine->bytes += sgt_corpus_share(&mine->files[i]);
        mine->line_files += mine->files[i].lines || mine->files[i].rows;
    }
    return SGT_OK;
}
