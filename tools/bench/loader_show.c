/* loader_show.c: shows the results of sgt-bench loader, as a table or as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "loader/base/cpu.h"
#include "tools/bench/loader.h"
#include "tools/cli/talk.h"

const char *loader_maker_name(int maker)
{
    static const char *const others[] = {"memcpy",         "fio",        "numpy window",
                                         "numpy gather",   "numpy loop", "torch 0 workers",
                                         "torch 2 workers"};
    return loader_is_reader(maker) ? sgt_reader_name((sgt_reader)maker)
                                   : others[maker - LOADER_MEMCPY];
}

const char *loader_output_name(int output)
{
    static const char *const names[LOADER_OUTPUTS] = {"u16", "i32", "i64", "-"};
    return names[output];
}

static const char *sampling_name(const loader_row *r)
{
    return sgt_sampling_name((sgt_sampling)r->sampling);
}

static const char *state_name(const loader_row *r)
{
    static const char *const names[] = {"warm", "mapped", "cached", "cold"};
    return names[r->state];
}

static double tokens_per_s(const loader_row *r)
{
    return (double)r->batch * r->seq / r->us_per_batch * 1e6;
}

/* Count the 2(T+1) bytes that a row has on disk. */
static double gb_per_s(const loader_row *r)
{
    return 2.0 * r->batch * (r->seq + 1.0) / r->us_per_batch * 1e-3;
}

/* ---- from which batch on preload pays ---- */

/* preload reads and maps everything when it opens, so it opens later than mmap, but all its batches
 * come at one speed. Find the number of batches n for which opening and n batches of a cached set
 * take mmap as long as preload. mmap makes the first epoch's batches at the speed of `cached`, its
 * row, and the others at that of the mapped row. INFINITY: never. */
static double pays_from(const loader_group *g, const loader_row *cached, double epoch)
{
    const loader_row *preload = NULL, *mapped = NULL;
    for (const loader_row *r = g->rows; r < g->rows + g->count; r++) {
        if (r->output != cached->output || r->plain) continue;
        if (r->maker == SGT_READER_PRELOAD) preload = r;
        if (r->state == LOADER_MAPPED) mapped = r;
    }
    if (!preload || !mapped) return INFINITY;
    double ahead = (preload->open_ms - cached->open_ms) * 1e3;
    double first = cached->us_per_batch - preload->us_per_batch;
    double later = mapped->us_per_batch - preload->us_per_batch;
    if (ahead <= 0) return 0;
    if (ahead <= first * epoch) return ceil(ahead / first);
    return later > 0 ? ceil(epoch + (ahead - first * epoch) / later) : INFINITY;
}

/* Return the number of batches of an epoch. */
static double epoch_batches(const loader_bench *b, const loader_row *r)
{
    return (double)b->tokens / ((double)r->batch * r->seq);
}

static void show_pays_from(const loader_bench *b, const loader_group *g, const loader_row *cached)
{
    char n[32], all[32];
    double epoch = epoch_batches(b, cached), from = pays_from(g, cached, epoch);
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

/* ---- the table ---- */

/* Print over / us, the quotient of two times, or spaces if `over` was not measured. */
static void show_quotient(int width, int digits, double over, double us)
{
    if (over > 0) printf(" %*.*f", width, digits, over / us);
    else printf(" %*s", width, "");
}

/* Print the columns that both tables have. */
static void show_row_begin(const loader_row *r, const char *name)
{
    printf("%c %-15s %-3s %-10s %6" PRIu32 " %6" PRIu32 " %10.2f %9.1f", r->best ? '*' : ' ', name,
           loader_output_name(r->output), sampling_name(r), r->batch, r->seq, r->us_per_batch,
           tokens_per_s(r) * 1e-6);
}

static void show_warm_row(const loader_row *r)
{
    char name[32];
    snprintf(name, sizeof name, r->state == LOADER_WARM ? "%s" : "%s (%s)",
             loader_maker_name(r->maker), state_name(r));
    show_row_begin(r, r->plain ? "plain loop" : name);
    show_quotient(8, 4, r->memcpy_us, r->us_per_batch);
    if (loader_is_reader(r->maker)) {
        show_quotient(7, 2, r->preload_us, r->us_per_batch);
        show_quotient(6, 1, r->loop_us, r->us_per_batch);
        printf(" %8.1f", r->open_ms);
    }
    printf("\n");
}

static void show_cold_row(const loader_row *r)
{
    /* memcpy and preload read from memory, so the disk does not limit them */
    int from_memory = r->maker == LOADER_MEMCPY || r->maker == SGT_READER_PRELOAD;
    double limit = from_memory ? 0 : r->fio_us > 0 ? r->fio_us : r->memcpy_us;
    show_row_begin(r, loader_maker_name(r->maker));
    printf(" %7.3f", gb_per_s(r));
    show_quotient(8, 4, limit, r->us_per_batch);
    if (r->maker != LOADER_MEMCPY) printf(" %5.2f", r->cpu_share);
    if (loader_is_reader(r->maker)) printf(" %8.1f", r->open_ms);
    printf("\n");
}

static void show_versions(const loader_bench *b)
{
    const char *names[] = {b->numpy, b->torch, b->fio};
    int n = 0;
    char shown[64];
    for (int i = 0; i < 3; i++)
        if (names[i][0])
            printf("%s%s", n++ ? ", " : "; beside ", sgt_printable(shown, sizeof shown, names[i]));
}

static void show_head(const loader_bench *b)
{
    char tokens[32], bytes[32], shards[32], path[48], machine[160];
    printf("%s: %s tokens (%s) in %s shard%s\n", bench_name(path, sizeof path, b->path),
           sgt_format_count(tokens, sizeof tokens, b->tokens),
           sgt_format_bytes(bytes, sizeof bytes, 2 * b->tokens),
           sgt_format_count(shards, sizeof shards, b->shard_count), b->shard_count == 1 ? "" : "s");
    printf("%s\nmedian of %" PRIu64, bench_machine(machine, sizeof machine), b->o->turns);
    show_versions(b);
    printf("\n\n");
}

/* Return the name of the limit that the column "of limit" refers to. */
static const char *limit_text(const loader_bench *b)
{
    if (!b->o->cold) return "memcpy of the same windows, from memory";
    return b->fio[0]
               ? "the disk, read by fio at the same depth"
               : "memcpy of the same windows (the disk's limit needs fio: apt-get install fio)";
}

static void show_group(const loader_bench *b, const loader_group *g)
{
    for (const loader_row *r = g->rows; r < g->rows + g->count; r++)
        if (!r->why[0]) (b->o->cold ? show_cold_row : show_warm_row)(r);
}

/* Say when preload pays in this group, only for the last output. */
static void show_lesson(const loader_bench *b, const loader_group *g)
{
    for (size_t i = g->count; i-- > 0;) {
        const loader_row *r = &g->rows[i];
        if (r->state != LOADER_CACHED || r->preload_us <= 0) continue;
        show_pays_from(b, g, r);
        return;
    }
}

void loader_show(void *bench)
{
    const loader_bench *b = bench;
    show_head(b);
    printf("%s, %" PRIu64 " thread%s\n",
           b->o->cold ? "Dropped from the page cache before each measurement" : "Warm",
           b->o->threads, b->o->threads == 1 ? "" : "s");
    printf("  reader          out sampling    batch    seq   us/batch Mtokens/s%s\n",
           b->o->cold ? "    GB/s of limit   CPU  open ms" : " of limit preload x loop  open ms");
    for (size_t i = 0; i < b->group_count; i++) show_group(b, &b->groups[i]);
    printf("\n* the fastest with its output. Limit: %s.\n", limit_text(b));
    if (b->o->cold)
        printf("  GB/s counts the 2(T+1) bytes that a row is on disk, whatever the output is.\n"
               "  preload reads everything when it opens, and nothing later.\n");
    else
        printf("  preload: speed as a share of preload's. x loop: times as fast as the plain "
               "loop.\n"
               "  mmap (cold): the set is not in the page cache yet; (cached): it is, but not "
               "mapped.\n");
    for (size_t i = 0; i < b->group_count; i++) show_lesson(b, &b->groups[i]);
}

/* ---- JSON ---- */

static void add_comparisons(json_t *j, const loader_bench *b, const loader_group *g,
                            const loader_row *r)
{
    if (r->maker == SGT_READER_MMAP) json_object_set_new(j, "pass", json_string(state_name(r)));
    if (r->preload_us > 0)
        json_object_set_new(j, "preload_fraction", json_real(r->preload_us / r->us_per_batch));
    if (r->loop_us > 0)
        json_object_set_new(j, "loop_speedup", json_real(r->loop_us / r->us_per_batch));
    if (r->state != LOADER_CACHED || r->preload_us <= 0) return;
    double epoch = epoch_batches(b, r), from = pays_from(g, r, epoch);
    json_object_set_new(j, "epoch_batches", json_real(epoch));
    json_object_set_new(j, "preload_pays_from_batch",
                        isfinite(from) ? json_real(from) : json_null());
}

static json_t *result_json(const loader_bench *b, const loader_group *g, const loader_row *r)
{
    json_t *j = json_pack("{s:s, s:i, s:i, s:s, s:s, s:b, s:i, s:f, s:f, s:f, s:f, s:f}", "reader",
                          loader_maker_name(r->maker), "batch", (int)r->batch, "seq", (int)r->seq,
                          "sampling", sampling_name(r), "output", loader_output_name(r->output),
                          "cold", r->state == LOADER_COLD, "threads", r->threads, "us_per_batch",
                          r->us_per_batch, "tokens_per_s", tokens_per_s(r), "gb_per_s", gb_per_s(r),
                          "memcpy_fraction", r->memcpy_us / r->us_per_batch, "open_ms", r->open_ms);
    if (!loader_is_python(r->maker)) json_object_set_new(j, "cpu_share", json_real(r->cpu_share));
    if (r->fio_us > 0)
        json_object_set_new(j, "fio_fraction", json_real(r->fio_us / r->us_per_batch));
    json_object_set_new(j, "best", json_boolean(r->best));
    add_comparisons(j, b, g, r);
    return j;
}

static void add_results(json_t *results, json_t *peers, json_t *out, const loader_bench *b,
                        const loader_group *g, double *limit)
{
    for (const loader_row *r = g->rows; r < g->rows + g->count; r++) {
        if (r->why[0])
            json_array_append_new(out, json_pack("{s:s, s:s, s:s}", "reader",
                                                 loader_maker_name(r->maker), "output",
                                                 loader_output_name(r->output), "why", r->why));
        else if (r->maker == LOADER_MEMCPY) *limit = gb_per_s(r) > *limit ? gb_per_s(r) : *limit;
        else if (!r->plain)
            json_array_append_new(loader_is_reader(r->maker) ? results : peers,
                                  result_json(b, g, r));
    }
}

/* Return the results as a JSON document. memcpy_gb_per_s is the best of all groups, but each group
 * is compared with its own. */
json_t *loader_json(void *bench)
{
    const loader_bench *b = bench;
    json_t *results = json_array(), *peers = json_array(), *out = json_array();
    double limit = 0;
    for (size_t i = 0; i < b->group_count; i++)
        add_results(results, peers, out, b, &b->groups[i], &limit);
    json_t *top = json_pack(
        "{s:s, s:i, s:i, s:i, s:I, s:I, s:f, s:o, s:o, s:o}", "cpu", sgt_cpu_model(), "cores",
        sgt_cpu_count(), "threads", (int)b->o->threads, "turns", (int)b->o->turns, "tokens",
        (json_int_t)b->tokens, "shards", (json_int_t)b->shard_count, "memcpy_gb_per_s", limit,
        "results", results, "peers", peers, "left_out", out);
    if (!top) return NULL;
    if (b->numpy[0]) json_object_set_new(top, "numpy", json_string(b->numpy));
    if (b->torch[0]) json_object_set_new(top, "torch", json_string(b->torch));
    if (b->fio[0]) json_object_set_new(top, "fio", json_string(b->fio));
    return top;
}
