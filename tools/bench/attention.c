/* attention.c: sgt-bench attention: one layer's causal attention, forward and backward. */
#include "tools/bench/attention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "tools/bench/bench.h"
#include "tools/bench/shape.h"
#include "tools/cli/talk.h"

static bench_shape shape = BENCH_SHAPE;
static uint64_t heads = 12, head_size = 64;

static const sgt_option table[] = {
    {.name = "What is run"},
    BENCH_DEVICE(shape),
    BENCH_BATCH(shape, "rows", 1 << 16),
    BENCH_SEQ(shape, "512", 1 << 20),
    {"heads", 0, SGT_OPT_COUNT, &heads, "N", "heads of a row", .def = "12", .min = 1, .max = 1024},
    {"head-size", 0, SGT_OPT_COUNT, &head_size, "N", "numbers of a head", .def = "64", .min = 1, .max = 1024},
    BENCH_PRECISION(shape, "what queries, keys and values are kept in"),
    BENCH_THREADS(shape),
    {.name = "How"},
    BENCH_OUTPUT(shape),
    {0}};

static const sgt_program program = {
    .name = "sgt-bench attention",
    .usage = "sgt-bench attention [OPTION]...",
    .about =
        "Measures one layer's causal attention by itself, forward and backward, in every way that the device has: on\n"
        "CUDA ours (own), cuDNN's (cudnn) and the one that stores T x T scores (naive); on a CPU ours.",
    .options = table,
    .examples = "  sgt-bench attention --batch-size 4 --seq-len 512\n"
                "  sgt-bench attention --device cuda --batch-size 64 --seq-len 1024 --precision bf16"};

/* What causal attention needs: products of (T, T) with a half left out, two forward and five backward. */
static double flops(const attention_bench *b, int products)
{
    return (double)products * (double)b->B * (double)b->H * (double)b->T * (double)b->T * (double)b->D;
}

static double forward_flops(const attention_bench *b) { return flops(b, 2); }
static double backward_flops(const attention_bench *b) { return flops(b, 5); }

/* ---- results ---- */

static json_t *line_json(const attention_bench *b, const attention_line *l)
{
    if (!(l->forward_ms > 0)) return json_pack("{s:s, s:s}", "attention", l->way, "why_not", l->why);
    return json_pack("{s:s, s:f, s:f, s:f, s:f}", "attention", l->way, "forward_ms", l->forward_ms, "backward_ms",
                     l->backward_ms, "forward_tflops", forward_flops(b) / l->forward_ms * 1e-9, "backward_tflops",
                     backward_flops(b) / l->backward_ms * 1e-9);
}

static int print_json(const attention_bench *b, sgt_error *err)
{
    json_t *results = json_array();
    for (size_t i = 0; i < b->count; i++) json_array_append_new(results, line_json(b, &b->lines[i]));
    json_t *top = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o}", "cpu", sgt_cpu_model(), "device",
                            b->device, "library", b->library, "precision", sgt_precision_words[b->precision], "batch",
                            (json_int_t)b->B, "seq", (json_int_t)b->T, "heads", (json_int_t)b->H, "head_size",
                            (json_int_t)b->D, "results", results);
    if (!top) return sgt_fail(err, SGT_ENOMEM, "out of memory");
    int bad = json_dumpf(top, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) < 0 || putchar('\n') == EOF;
    json_decref(top);
    return bad ? sgt_fail_errno(err, "standard output") : SGT_OK;
}

static void show(const attention_bench *b, int cuda)
{
    char cpu[128], device[160], why[300];
    const char *unit = cuda ? "TFLOP/s" : "GFLOP/s";
    double scale = cuda ? 1e-9 : 1e-6;
    printf("%s, %s, %s\n", sgt_printable(cpu, sizeof cpu, sgt_cpu_model()),
           sgt_printable(device, sizeof device, b->device), b->library);
    printf("%s, %zu rows of %zu tokens, %zu heads of %zu; causal, the masked half is not counted\n\n",
           sgt_precision_words[b->precision], b->B, b->T, b->H, b->D);
    printf("  attention   forward ms   %s   backward ms   %s\n", unit, unit);
    for (size_t i = 0; i < b->count; i++) {
        const attention_line *l = &b->lines[i];
        printf("  %-9s", l->way);
        if (l->forward_ms > 0)
            printf("  %11.3f  %8.1f  %12.3f  %8.1f\n", l->forward_ms, forward_flops(b) / l->forward_ms * scale,
                   l->backward_ms, backward_flops(b) / l->backward_ms * scale);
        else printf("   %s\n", sgt_printable(why, sizeof why, l->why));
    }
}

/* ---- the subcommand ---- */

static int take_options(attention_bench *b, int cuda, sgt_error *err)
{
    b->precision = bench_precision(&shape, cuda);
    b->B = bench_batch(&shape, cuda);
    b->T = bench_seq(&shape, cuda, 512);
    b->H = (size_t)heads;
    b->D = (size_t)head_size;
    b->threads = bench_threads(&shape);
    if (b->precision != SGT_PRECISION_FP32 && !cuda)
        return sgt_fail(err, SGT_EUSAGE, "--precision %s: a CPU's attention is in fp32", shape.precision);
    if ((double)b->B * (double)b->T * (double)b->H * (double)b->D > 0x1p32)
        return sgt_fail(err, SGT_EUSAGE, "%zu x %zu x %zu x %zu numbers are over the 2^32 that are measured", b->B,
                        b->T, b->H, b->D);
    return SGT_OK;
}

static int bench_attention(int argc, char **argv)
{
    sgt_error err;
    int first = sgt_options_parse(&program, argc, argv);
    if (first < argc) sgt_usage(&program, "%s: what is that?", argv[first]);
    sgt_talk talk = {program.name, shape.quiet};
    sgt_notice notice = sgt_talk_notice(&talk);
    char *cache = sgt_cache_folder();
    attention_bench b = {.cache = cache, .stop = sgt_catch_signals()};
    const char *device = shape.device;
    int rc = bench_device(&device, &notice, &err), cuda = strcmp(device, "cuda") == 0;
    if (rc == SGT_OK) rc = take_options(&b, cuda, &err);
    if (rc == SGT_OK) rc = cuda ? attention_on_cuda(&b, &err) : attention_on_cpu(&b, &err);
    if (rc == SGT_OK && shape.json) rc = print_json(&b, &err);
    else if (rc == SGT_OK && !shape.quiet) show(&b, cuda);
    if (rc == SGT_OK && (fflush(stdout) == EOF || ferror(stdout))) rc = sgt_fail_errno(&err, "standard output");
    free(cache);
    if (rc == SGT_EUSAGE) sgt_usage(&program, "%s", err.text);
    return rc < 0 ? sgt_report_failure(&program, &err) : SGT_EXIT_OK;
}

const sgt_command bench_attention_command = {"attention", "one layer's attention, forward and backward", &program, bench_attention};
