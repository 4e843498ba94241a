/* loader_show.c: shows the results of sgt-bench loader, as a table or as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "loader/base/cpu.h"
#include "tools/bench/loader.h"
#include "tools/cli/talk.h"

/* Count the 2(T+1) bytes that a row has on disk. */
static double gb_per_s(const loader_result *r)
{
    return 2.0 * r->batch * (r->seq + 1.0) / r->us_per_batch * 1e-3;
}
static double memcpy_fraction(const loader_result *r) { return r->memcpy_us / r->us_per_batch; }

/* ---- the table ---- */

void loader_row_name(char *name, size_t size, const loader_result *r)
{
    if (r->way == LOADER_SCALAR) snprintf(name, size, "plain loop");
    else
        snprintf(name, size, r->pass ? "%s (%s)" : "%s", loader_who_name(r->who),
                 loader_pass_name(r->pass));
}

/* Print over / us, the quotient of two times, or spaces if `over` was not measured. */
static void show_quotient(int width, int digits, double over, double us)
{
    if (over > 0) printf(" %*.*f", width, digits, over / us);
    else printf(" %*s", width, "");
}

static void show_warm_row(const loader_result *r)
{
    char name[32];
    loader_row_name(name, sizeof name, r);
    printf("%c %-15s %-3s %-10s %6" PRIu32 " %6" PRIu32 " %10.2f %9.1f", r->best ? '*' : ' ', name,
           loader_output_name(r->output), loader_sampling_name(r->sampling), r->batch, r->seq,
           r->us_per_batch, loader_tokens_per_s(r) * 1e-6);
    show_quotient(8, 4, r->memcpy_us, r->us_per_batch);
    if (loader_is_reader(r->who)) {
        show_quotient(7, 2, r->preload_us, r->us_per_batch);
        show_quotient(6, 1, r->loop_us, r->us_per_batch);
        printf(" %8.1f", r->open_ms);
    }
    printf("\n");
}

static void show_row(const loader_bench *b, const loader_result *r)
{
    double limit = b->o->cold && r->fio_us > 0 ? r->fio_us : r->memcpy_us;
    printf("%c %-15s %-3s %-10s %6" PRIu32 " %6" PRIu32 " %10.2f %9.1f %7.3f", r->best ? '*' : ' ',
           loader_who_name(r->who), loader_output_name(r->output),
           loader_sampling_name(r->sampling), r->batch, r->seq, r->us_per_batch,
           loader_tokens_per_s(r) * 1e-6, gb_per_s(r));
    /* memcpy and preload read from memory, so the disk does not limit them */
    int from_memory = r->who == LOADER_MEMCPY || r->who == SGT_READER_PRELOAD;
    if (limit > 0 && !(from_memory && b->o->cold)) printf(" %8.4f", limit / r->us_per_batch);
    else printf(" %8s", "");
    if (b->o->cold && r->who != LOADER_MEMCPY) printf(" %5.2f", r->cpu_share);
    if (loader_is_reader(r->who)) printf("%*s %8.1f", b->o->cold ? 0 : 6, "", r->open_ms);
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

void loader_show(void *bench)
{
    const loader_bench *b = bench;
    show_head(b);
    if (b->grid_count) {
        printf("%s, %" PRIu64 " thread%s\n",
               b->o->cold ? "Dropped from the page cache before each measurement" : "Warm",
               b->o->threads, b->o->threads == 1 ? "" : "s");
        printf("  reader          out sampling    batch    seq   us/batch Mtokens/s%s\n",
               b->o->cold ? "    GB/s of limit   CPU  open ms"
                          : " of limit preload x loop  open ms");
    }
    for (size_t i = 0; i < b->grid_count; i++)
        for (size_t j = 0; j < b->groups[i].count; j++)
            if (!b->groups[i].results[j].why[0])
                b->o->cold ? show_row(b, &b->groups[i].results[j])
                           : show_warm_row(&b->groups[i].results[j]);
    if (b->grid_count) {
        printf("\n* the fastest with its output. Limit: %s.\n", limit_text(b));
        if (b->o->cold)
            printf("  GB/s counts the 2(T+1) bytes that a row is on disk, whatever the output is.\n"
                   "  preload reads everything when it opens, and nothing later.\n");
        else
            printf("  preload: speed as a share of preload's. x loop: times as fast as the plain "
                   "loop.\n"
                   "  mmap (cold): the set is not in the page cache yet; (cached): it is, but not "
                   "mapped.\n");
        loader_passes_show(b);
    }
    loader_limits_show(b);
}

/* ---- JSON ---- */

static void add_comparisons(json_t *j, const loader_bench *b, const loader_group *g,
                            const loader_result *r)
{
    if (r->pass) json_object_set_new(j, "pass", json_string(loader_pass_name(r->pass)));
    if (r->preload_us > 0)
        json_object_set_new(j, "preload_fraction", json_real(r->preload_us / r->us_per_batch));
    if (r->loop_us > 0)
        json_object_set_new(j, "loop_speedup", json_real(r->loop_us / r->us_per_batch));
    if (r->pass != LOADER_CACHED || r->preload_us <= 0) return;
    double from = loader_pays_from(b, g, r);
    json_object_set_new(j, "epoch_batches", json_real(loader_epoch(b, r)));
    json_object_set_new(j, "preload_pays_from_batch",
                        isfinite(from) ? json_real(from) : json_null());
}

static json_t *result_json(const loader_bench *b, const loader_group *g, const loader_result *r)
{
    json_t *j =
        json_pack("{s:s, s:i, s:i, s:s, s:s, s:b, s:i, s:f, s:f, s:f, s:f, s:f}", "reader",
                  loader_who_name(r->who), "batch", (int)r->batch, "seq", (int)r->seq, "sampling",
                  loader_sampling_name(r->sampling), "output", loader_output_name(r->output),
                  "cold", r->cold, "threads", r->threads, "us_per_batch", r->us_per_batch,
                  "tokens_per_s", loader_tokens_per_s(r), "gb_per_s", gb_per_s(r),
                  "memcpy_fraction", memcpy_fraction(r), "open_ms", r->open_ms);
    if (!loader_is_python(r->who)) json_object_set_new(j, "cpu_share", json_real(r->cpu_share));
    if (r->fio_us > 0)
        json_object_set_new(j, "fio_fraction", json_real(r->fio_us / r->us_per_batch));
    json_object_set_new(j, "best", json_boolean(r->best));
    add_comparisons(j, b, g, r);
    return j;
}

static void add_results(json_t *results, json_t *peers, json_t *out, const loader_bench *b,
                        const loader_group *g, double *limit)
{
    for (size_t i = 0; i < g->count; i++) {
        const loader_result *r = &g->results[i];
        if (r->why[0])
            json_array_append_new(out, json_pack("{s:s, s:s, s:s}", "reader",
                                                 loader_who_name(r->who), "output",
                                                 loader_output_name(r->output), "why", r->why));
        else if (r->who == LOADER_MEMCPY) *limit = gb_per_s(r) > *limit ? gb_per_s(r) : *limit;
        else if (r->way == LOADER_DRAW)
            json_array_append_new(loader_is_reader(r->who) ? results : peers, result_json(b, g, r));
    }
}

/* Return the results as a JSON document. memcpy_gb_per_s is the best of all groups, but each group
 * is compared with its own. */
json_t *loader_json(void *bench)
{
    const loader_bench *b = bench;
    json_t *results = json_array(), *peers = json_array(), *out = json_array();
    double limit = 0;
    for (size_t i = 0; i < b->grid_count; i++)
        add_results(results, peers, out, b, &b->groups[i], &limit);
    json_t *top = json_pack(
        "{s:s, s:i, s:i, s:i, s:I, s:I, s:f, s:o, s:o, s:o, s:o}", "cpu", sgt_cpu_model(), "cores",
        sgt_cpu_count(), "threads", (int)b->o->threads, "turns", (int)b->o->turns, "tokens",
        (json_int_t)b->tokens, "shards", (json_int_t)b->shard_count, "memcpy_gb_per_s", limit,
        "results", results, "peers", peers, "left_out", out, "limits", loader_limits_json(b));
    if (!top) return NULL;
    if (b->numpy[0]) json_object_set_new(top, "numpy", json_string(b->numpy));
    if (b->torch[0]) json_object_set_new(top, "torch", json_string(b->torch));
    if (b->fio[0]) json_object_set_new(top, "fio", json_string(b->fio));
    return top;
}
