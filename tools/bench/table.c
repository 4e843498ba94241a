/* table.c: what sgt-bench loader has measured, for people and as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "base/cpu.h"
#include "tools/bench/loader.h"
#include "tools/cli/talk.h"

const char *loader_reader_name(int r) { return r == SGT_READERS ? "memcpy" : sgt_reader_name((sgt_reader)r); }
const char *loader_output_name(int i) { return i == SGT_OUTPUT_U16 ? "u16" : "i32"; }
const char *loader_sampling_name(int s) { return sgt_sampling_name((sgt_sampling)s); }

static double tokens_per_s(const loader_result *r) { return (double)r->batch * r->seq / r->us_per_batch * 1e6; }
static double gb_per_s(const loader_result *r) { return 2.0 * r->batch * (r->seq + 1.0) / r->us_per_batch * 1e-3; }
static double fraction(const loader_result *r) { return r->limit_us / r->us_per_batch; }

void loader_show(const loader_bench *b)
{
    char tokens[32], bytes[32], shards[32], path[512], cpu[128];
    printf("%s: %s tokens (%s) in %s shard%s%s\n", sgt_printable(path, sizeof path, b->path),
           sgt_format_count(tokens, sizeof tokens, b->tokens), sgt_format_bytes(bytes, sizeof bytes, 2 * b->tokens),
           sgt_format_count(shards, sizeof shards, b->shard_count), b->shard_count == 1 ? "" : "s",
           b->o->cold ? ", dropped from the page cache before each measurement" : ", warm");
    printf("%s, %d cores, %" PRIu64 " thread%s; median of %d\n\n", sgt_printable(cpu, sizeof cpu, sgt_cpu_model()),
           sgt_cpu_count(), b->o->threads, b->o->threads == 1 ? "" : "s", LOADER_ROUNDS);
    printf("  reader   output  sampling     batch      seq    us/batch   Mtokens/s     GB/s  of memcpy   open ms\n");
    for (size_t i = 0; i < b->count; i++) {
        const loader_result *r = &b->results[i];
        printf("%c %-8s %-6s  %-10s %7" PRIu32 "  %7" PRIu32 "  %10.2f  %10.1f  %7.3f  %9.4f", r->best ? '*' : ' ',
               loader_reader_name(r->reader), loader_output_name(r->output), loader_sampling_name(r->sampling),
               r->batch, r->seq, r->us_per_batch, tokens_per_s(r) * 1e-6, gb_per_s(r), fraction(r));
        if (r->reader != SGT_READERS) printf("  %8.1f", r->open_ms);
        printf("\n");
    }
    printf("\n* the fastest reader of its kind. GB/s counts the 2(T+1) bytes that a row is on disk, whatever the\n"
           "  output; memcpy copies the same windows from memory.\n");
    if (b->o->cold) printf("  preload reads everything when it opens, and nothing later.\n");
}

static json_t *result_json(const loader_bench *b, const loader_result *r)
{
    return json_pack("{s:s, s:i, s:i, s:s, s:s, s:b, s:f, s:f, s:f, s:f, s:f, s:b}", "reader",
                     loader_reader_name(r->reader), "batch", (int)r->batch, "seq", (int)r->seq, "sampling",
                     loader_sampling_name(r->sampling), "output", loader_output_name(r->output), "cold", b->o->cold,
                     "us_per_batch", r->us_per_batch, "tokens_per_s", tokens_per_s(r), "gb_per_s", gb_per_s(r),
                     "memcpy_fraction", fraction(r), "open_ms", r->open_ms, "best", r->best);
}

/* memcpy_gb_per_s: the best over the groups, each of which is compared with its own. */
int loader_print_json(const loader_bench *b, sgt_error *err)
{
    json_t *results = json_array();
    double limit = 0;
    for (size_t i = 0; i < b->count; i++) {
        const loader_result *r = &b->results[i];
        if (r->reader != SGT_READERS) json_array_append_new(results, result_json(b, r));
        else if (gb_per_s(r) > limit) limit = gb_per_s(r);
    }
    json_t *top = json_pack("{s:s, s:i, s:i, s:I, s:I, s:f, s:o}", "cpu", sgt_cpu_model(), "cores", sgt_cpu_count(),
                            "threads", (int)b->o->threads, "tokens", (json_int_t)b->tokens, "shards",
                            (json_int_t)b->shard_count, "memcpy_gb_per_s", limit, "results", results);
    if (!top) return sgt_fail(err, SGT_ENOMEM, "out of memory");
    int bad = json_dumpf(top, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) < 0 || putchar('\n') == EOF;
    json_decref(top);
    return bad ? sgt_fail_errno(err, "standard output") : SGT_OK;
}
