/* loader_plot.c: draw the table, a bar per row, and for each part of the loader a bar that shows
 * its share of the limit. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/bench/loader.h"
#include "tools/bench/picture.h"

static void put_group(bench_picture *p, const loader_bench *b, const loader_group *g)
{
    char name[64];
    bench_picture_group(p, "%s, %" PRIu32 " rows of %" PRIu32 ", %s: tokens a second",
                        loader_sampling_name(g->results[0].sampling), g->results[0].batch,
                        g->results[0].seq, b->o->cold ? "cold" : "warm");
    for (size_t i = 0; i < g->count; i++) {
        const loader_result *r = &g->results[i];
        if (r->why[0]) continue;
        bench_bar kind = loader_is_reader(r->who)  ? BENCH_OURS
                         : loader_is_limit(r->who) ? BENCH_LIMIT
                                                   : BENCH_PEER;
        snprintf(name, sizeof name, r->who == LOADER_FIO ? "%s" : "%s, %s", loader_who_name(r->who),
                 loader_output_name(r->output));
        bench_picture_bar(p, kind, loader_tokens_per_s(r), name, "%.1f M%s",
                          loader_tokens_per_s(r) * 1e-6, r->best ? ", the fastest" : "");
    }
}

static void put_lines(bench_picture *p, const loader_bench *b)
{
    bench_picture_group(p, "Each part beside its limit, which is 1");
    bench_picture_limit(p, 1);
    for (size_t i = 0; i < b->line_count; i++) {
        double share = loader_line_share(b, &b->lines[i]);
        if (share > 0)
            bench_picture_bar(p, BENCH_OURS, share, loader_line_ours(&b->lines[i]),
                              "%.2f \u00d7 %s", share, loader_line_other(&b->lines[i]));
    }
}

int loader_plot(void *bench, const char *path, sgt_error *err)
{
    const loader_bench *b = bench;
    char name[64];
    bench_picture *p =
        bench_picture_new("Batches from %s (%.2f GB)", bench_name(name, sizeof name, b->path),
                          2e-9 * (double)b->tokens);
    for (size_t i = 0; i < b->grid_count; i++) put_group(p, b, &b->groups[i]);
    if (b->line_count) put_lines(p, b);
    return bench_picture_write(p, path, err);
}
