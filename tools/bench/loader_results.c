/* loader_results.c: adds groups and results, fills the page cache, and computes speeds. */
#include <stdlib.h>

#include "tools/bench/loader.h"

int loader_warm(const loader_bench *b, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < b->shard_count && rc == SGT_OK && b->may_be_warm; i++)
        rc = bench_cache_fill(b->shards[i].path, err);
    return rc;
}

int loader_add_group(loader_bench *b, size_t most, loader_group **out, sgt_error *err)
{
    loader_group *more = reallocarray(b->groups, b->group_count + 1, sizeof *more);
    if (!more) return sgt_fail_memory(err, NULL);
    b->groups = more;
    *out = &more[b->group_count];
    **out = (loader_group){.results = calloc(most, sizeof *more->results)};
    if (!(*out)->results) return sgt_fail_memory(err, NULL);
    b->group_count++;
    return SGT_OK;
}

loader_result *loader_add_result(loader_group *g, loader_result r)
{
    g->results[g->count] = r;
    return &g->results[g->count++];
}

double loader_tokens_per_s(const loader_result *r)
{
    return (double)r->batch * r->seq / r->us_per_batch * 1e6;
}
