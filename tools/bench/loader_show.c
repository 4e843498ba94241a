/* loader_show.c: the results of sgt-bench loader, as JSON and as a table. */
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

static const char *state_name(const loader_row *r)
{
    static const char *const names[] = {"warm", "mapped", "cached", "cold"};
    return names[r->state];
}

/* Count the 2(T+1) bytes that a row has on disk. */
static double gb_per_s(const loader_bench *b, const loader_row *r)
{
    return 2.0 * b->batch * (b->seq + 1.0) / r->us_per_batch * 1e-3;
}

/* ---- from which batch on preload pays ---- */

/* preload reads and maps everything when it opens, so it opens later than mmap, but all its batches
 * come at one speed. Find the number of batches n for which opening and n batches of a cached set
 * take mmap as long as preload. mmap makes the first epoch's batches at the speed of `cached`, its
 * row, and the others at that of the mapped row. INFINITY: never. */
static double pays_from(const loader_bench *b, const loader_row *cached, double epoch)
{
    const loader_row *preload = NULL, *mapped = NULL;
    for (const loader_row *r = b->rows; r < b->rows + b->count; r++) {
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
static double epoch_batches(const loader_bench *b)
{
    return (double)b->tokens / ((double)b->batch * b->seq);
}

/* Say when preload pays, for the last output. */
static void show_pays_from(const loader_bench *b)
{
    char n[32], all[32];
    const loader_row *cached = NULL;
    for (const loader_row *r = b->rows; r < b->rows + b->count; r++)
        if (r->state == LOADER_CACHED && r->preload_us > 0) cached = r;
    if (!cached) return;
    double epoch = epoch_batches(b), from = pays_from(b, cached, epoch);
    if (from > 1e15) {
        printf(
            "%s: preload does not pay once the set is in the page cache: mmap is as fast here.\n",
            loader_output_name(cached->output));
        return;
    }
    printf("%s: preload pays from batch %s on, if the set is in the page cache.\n",
           loader_output_name(cached->output), sgt_format_count(n, sizeof n, (uint64_t)from));
    printf("  An epoch of this set is %s such batches: ",
           sgt_format_count(all, sizeof all, (uint64_t)ceil(epoch)));
    if (from <= epoch)
        printf("use preload if a run reads %.2g of an epoch or more.\n", from / epoch);
    else printf("use mmap for a run of less than %.3g epochs.\n", from / epoch);
}

/* ---- JSON ---- */

static json_t *result_json(const loader_bench *b, const loader_row *r)
{
    json_t *j = json_pack(
        "{s:s, s:i, s:i, s:s, s:s, s:b, s:i, s:f, s:f, s:f, s:f, s:f}", "reader",
        loader_maker_name(r->maker), "batch", (int)b->batch, "seq", (int)b->seq, "sampling",
        sgt_sampling_name((sgt_sampling)b->o->sampling), "output", loader_output_name(r->output),
        "cold", r->state == LOADER_COLD, "threads", r->threads, "us_per_batch", r->us_per_batch,
        "tokens_per_s", (double)b->batch * b->seq / r->us_per_batch * 1e6, "gb_per_s",
        gb_per_s(b, r), "memcpy_fraction", r->memcpy_us / r->us_per_batch, "open_ms", r->open_ms);
    if (!loader_is_python(r->maker)) json_object_set_new(j, "cpu_share", json_real(r->cpu_share));
    bench_put(j, "fio_fraction", r->fio_us / r->us_per_batch);
    json_object_set_new(j, "best", json_boolean(r->best));
    if (r->maker == SGT_READER_MMAP) json_object_set_new(j, "pass", json_string(state_name(r)));
    bench_put(j, "preload_fraction", r->preload_us / r->us_per_batch);
    bench_put(j, "loop_speedup", r->loop_us / r->us_per_batch);
    if (r->state != LOADER_CACHED || r->preload_us <= 0) return j;
    double epoch = epoch_batches(b), from = pays_from(b, r, epoch);
    json_object_set_new(j, "epoch_batches", json_real(epoch));
    json_object_set_new(j, "preload_pays_from_batch",
                        isfinite(from) ? json_real(from) : json_null());
    return j;
}

json_t *loader_json(void *bench)
{
    const loader_bench *b = bench;
    json_t *results = json_array(), *peers = json_array(), *out = json_array();
    double limit = 0;
    for (const loader_row *r = b->rows; r < b->rows + b->count; r++) {
        if (r->why[0])
            json_array_append_new(out, json_pack("{s:s, s:s, s:s}", "reader",
                                                 loader_maker_name(r->maker), "output",
                                                 loader_output_name(r->output), "why", r->why));
        else if (r->maker == LOADER_MEMCPY) limit = gb_per_s(b, r);
        else if (!r->plain)
            json_array_append_new(loader_is_reader(r->maker) ? results : peers, result_json(b, r));
    }
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

/* ---- the table ---- */

static void show_head(const loader_bench *b)
{
    const char *versions[] = {b->numpy, b->torch, b->fio};
    char tokens[32], bytes[32], shards[32], path[48], machine[160], shown[64];
    int n = 0;
    printf("%s: %s tokens (%s) in %s shard%s\n", bench_name(path, sizeof path, b->path),
           sgt_format_count(tokens, sizeof tokens, b->tokens),
           sgt_format_bytes(bytes, sizeof bytes, 2 * b->tokens),
           sgt_format_count(shards, sizeof shards, b->shard_count), b->shard_count == 1 ? "" : "s");
    printf("%s\nmedian of %" PRIu64, bench_machine(machine, sizeof machine), b->o->turns);
    for (int i = 0; i < 3; i++)
        if (versions[i][0])
            printf("%s%s", n++ ? ", " : "; beside ",
                   sgt_printable(shown, sizeof shown, versions[i]));
    printf("\n\n%s, %" PRIu64 " thread%s, %s rows, %" PRIu32 " x %" PRIu32 " tokens\n",
           b->o->cold ? "Dropped from the page cache before each measurement" : "Warm",
           b->o->threads, b->o->threads == 1 ? "" : "s",
           sgt_sampling_name((sgt_sampling)b->o->sampling), b->batch, b->seq);
}

/* Return the row of the table: the result, with the columns that only people read. */
static json_t *shown_row(const loader_bench *b, const loader_row *r)
{
    char name[32];
    json_t *j = result_json(b, r);
    /* memcpy and preload read from memory, so the disk does not limit them */
    int from_memory = r->maker == LOADER_MEMCPY || r->maker == SGT_READER_PRELOAD;
    double limit = b->o->cold && r->fio_us > 0 ? r->fio_us : r->memcpy_us;
    snprintf(name, sizeof name, b->o->cold || r->state == LOADER_WARM ? "%s" : "%s (%s)",
             loader_maker_name(r->maker), state_name(r));
    json_object_set_new(j, "name", json_string(r->plain ? "plain loop" : name));
    if (!b->o->cold || !from_memory) bench_put(j, "limit", limit / r->us_per_batch);
    if (!loader_is_reader(r->maker)) json_object_del(j, "open_ms");
    if (!b->o->cold) json_object_del(j, "cpu_share");
    return j;
}

void loader_show(void *bench)
{
    static const bench_column columns[] = {
        {"name", "reader", .kind = BENCH_TEXT},
        {"output", "output", .kind = BENCH_TEXT},
        {"us_per_batch", "us/batch", .decimals = 2},
        {"tokens_per_s", "Mtokens/s", .decimals = 1, .scale = 1e-6},
        {"gb_per_s", "GB/s", .decimals = 3},
        {"limit", "of limit", .decimals = 4},
        {"preload_fraction", "preload", .decimals = 2},
        {"loop_speedup", "x loop", .decimals = 1},
        {"cpu_share", "CPU", .decimals = 2},
        {"open_ms", "open ms", .decimals = 1},
        {0}};
    const loader_bench *b = bench;
    json_t *rows = json_array();
    for (const loader_row *r = b->rows; r < b->rows + b->count; r++)
        if (!r->why[0]) json_array_append_new(rows, shown_row(b, r));
    show_head(b);
    bench_table(rows, columns, "best");
    json_decref(rows);
    printf("\n* the fastest with its output. Limit: %s.\n"
           "  GB/s counts the 2(T+1) bytes that a row has on disk, whatever the output is.\n",
           !b->o->cold ? "memcpy of the same windows, from memory"
           : b->fio[0]
               ? "the disk, read by fio at the same depth"
               : "memcpy of the same windows (the disk's limit needs fio: apt-get install fio)");
    if (b->o->cold) printf("  preload reads everything when it opens, and nothing later.\n");
    else
        printf("  preload: speed as a share of preload's. x loop: times as fast as the plain "
               "loop.\n"
               "  mmap (cold): the set is not in the page cache yet; (cached): it is, but not "
               "mapped.\n");
    show_pays_from(b);
}
