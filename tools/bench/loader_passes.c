/* loader_passes.c: the three states in which mmap meets a set, and what they mean for a run.
 * LOADER_COLD: an epoch of a set that is not cached reads the disk. LOADER_CACHED: the first epoch
 * of a cached set maps each page. LOADER_MAPPED: later epochs find the pages mapped. preload reads
 * and maps everything when it opens, so it opens later, but all its batches come at one speed. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/bench/loader.h"
#include "tools/cli/talk.h"

/* Return the result that r is compared with: preload with the same output, batch and options,
 * without --cold; NULL if there is none. */
static const loader_result *beside(const loader_bench *b, const loader_result *r, loader_way way)
{
    for (size_t i = 0; i < b->grid_count; i++)
        for (size_t j = 0; j < b->groups[i].count; j++) {
            const loader_result *p = &b->groups[i].results[j];
            if (p->who == SGT_READER_PRELOAD && p->way == way && p->output == r->output &&
                p->sampling == r->sampling && p->batch == r->batch && p->seq == r->seq &&
                p->threads == r->threads && !p->why[0])
                return p;
        }
    return NULL;
}

void loader_relate(loader_bench *b)
{
    for (size_t i = 0; i < b->grid_count; i++)
        for (size_t j = 0; j < b->groups[i].count; j++) {
            loader_result *r = &b->groups[i].results[j];
            const loader_result *p = beside(b, r, LOADER_DRAW), *loop = beside(b, r, LOADER_SCALAR);
            if (r->why[0] || !loader_is_reader(r->who)) continue;
            if (p) r->preload_us = p->us_per_batch;
            if (loop) r->loop_us = loop->us_per_batch;
            if (p && r->pass == LOADER_COLD) r->memcpy_us = p->memcpy_us;
        }
}

/* Return the mmap result with r's output in another state. */
static const loader_result *in_state(const loader_group *g, const loader_result *r,
                                     loader_pass pass)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->results[i].pass == pass && g->results[i].output == r->output) return &g->results[i];
    return NULL;
}

/* Find the number of batches n for which opening and n batches take mmap as long as preload. mmap
 * makes the first epoch's batches at the speed of `cached`, the others at that of `mapped`. */
double loader_pays_from(const loader_bench *b, const loader_group *g, const loader_result *cached)
{
    const loader_result *p = beside(b, cached, LOADER_DRAW),
                        *mapped = in_state(g, cached, LOADER_MAPPED);
    if (!p || !mapped || cached->why[0]) return INFINITY;
    double ahead = (p->open_ms - cached->open_ms) * 1e3, epoch = loader_epoch(b, cached);
    double first = cached->us_per_batch - p->us_per_batch,
           later = mapped->us_per_batch - p->us_per_batch;
    if (ahead <= 0) return 0;
    if (ahead <= first * epoch) return ceil(ahead / first);
    return later > 0 ? ceil(epoch + (ahead - first * epoch) / later) : INFINITY;
}

double loader_epoch(const loader_bench *b, const loader_result *r)
{
    return (double)b->tokens / ((double)r->batch * r->seq);
}

/* ---- lines below the table ---- */

static void show_lesson(const loader_bench *b, const loader_group *g, const loader_result *cached)
{
    char n[32], all[32];
    double from = loader_pays_from(b, g, cached), epoch = loader_epoch(b, cached);
    sgt_format_count(all, sizeof all, (uint64_t)ceil(epoch));
    printf("%s, %" PRIu32 " x %" PRIu32 ": ", loader_output_name(cached->output), cached->batch,
           cached->seq);
    if (from > 1e15) {
        printf("preload does not pay once the set is in the page cache: mmap is as fast here.\n");
        return;
    }
    printf("preload pays from batch %s on, if the set is in the page cache.\n",
           sgt_format_count(n, sizeof n, (uint64_t)from));
    printf("  An epoch of this set is %s such batches: ", all);
    if (from <= epoch)
        printf("use preload if a run reads %.2g of an epoch or more.\n", from / epoch);
    else printf("use mmap for a run of less than %.3g epochs.\n", from / epoch);
}

void loader_passes_show(const loader_bench *b)
{
    for (size_t i = 0; i < b->grid_count; i++)
        for (size_t j = b->groups[i].count; j-- > 0;) {
            const loader_result *r = &b->groups[i].results[j];
            if (r->pass != LOADER_CACHED || r->why[0] || !beside(b, r, LOADER_DRAW)) continue;
            show_lesson(b, &b->groups[i], r); /* only for the last output */
            break;
        }
}
