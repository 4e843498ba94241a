/* loader_plot.c: draws a bar for each row of the table, and a bar for each line of --limits that
 * shows its share of the limit. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/bench/loader.h"
#include "tools/bench/picture.h"

static void put_group(bench_picture *p, const loader_group *g)
{
    char name[64], row[32];
    bench_picture_group(p, "%s, %" PRIu32 " rows of %" PRIu32 ", %s: tokens a second",
                        loader_sampling_name(g->results[0].sampling), g->results[0].batch,
                        g->results[0].seq, g->results[0].cold ? "cold" : "warm");
    for (size_t i = 0; i < g->count; i++) {
        const loader_result *r = &g->results[i];
        if (r->why[0]) continue;
        loader_row_name(row, sizeof row, r);
        bench_bar kind = r->way == LOADER_SCALAR    ? BENCH_PEER
                         : loader_is_reader(r->who) ? BENCH_OURS
                         : loader_is_limit(r->who)  ? BENCH_LIMIT
                                                    : BENCH_PEER;
        snprintf(name, sizeof name, r->who == LOADER_FIO ? "%s" : "%s, %s", row,
                 loader_output_name(r->output));
        if (r->loop_us > 0 && r->way == LOADER_DRAW)
            bench_picture_bar(p, kind, loader_tokens_per_s(r), name, "%.1f M, %.1f x loop%s",
                              loader_tokens_per_s(r) * 1e-6, r->loop_us / r->us_per_batch,
                              r->best ? ", the fastest" : "");
        else
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
    for (size_t i = 0; i < b->grid_count; i++) put_group(p, &b->groups[i]);
    if (b->line_count) put_lines(p, b);
    return bench_picture_write(p, path, err);
}
