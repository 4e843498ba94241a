/* attention.c: sgt-bench attention: one layer's causal attention, forward and backward. */
#include "tools/bench/attention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "train/device.h"
#include "tools/bench/bench.h"
#include "tools/bench/shape.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"

static bench_shape shape = BENCH_SHAPE;
static uint64_t heads = 12, head_size = 64;

static const sgt_option table[] = {
    {.name = "What to run"},
    BENCH_DEVICE(shape),
    BENCH_BATCH(shape, "rows", 1 << 16),
    BENCH_SEQ(shape, "512", 1 << 20),
    {"heads", 0, SGT_OPT_COUNT, &heads, "N", "number of heads", .def = "12", .min = 1, .max = 1024},
    {"head-size", 0, SGT_OPT_COUNT, &head_size, "N", "head size", .def = "64", .min = 1,
     .max = 1024},
    BENCH_PRECISION(shape, "number format of queries, keys and values"),
    BENCH_THREADS(shape),
    {.name = "How"},
    BENCH_OUTPUT(shape.output),
    {0}};

static const sgt_program program = {
    .name = "sgt-bench attention",
    .usage = "sgt-bench attention [OPTION]...",
    .about = "Measures one layer's causal attention by itself, forward and backward, in every way "
             "that the device has: on\n"
             "CUDA ours (own), cuDNN's (cudnn) and the one that stores T x T scores (naive); on a "
             "CPU ours.",
    .options = table,
    .examples =
        "  sgt-bench attention --batch-size 4 --seq-len 512\n"
        "  sgt-bench attention --device cuda --batch-size 64 --seq-len 1024 --precision bf16"};

/* Return the floating-point operations of causal attention: `products` products with (T, T) scores,
 * without their masked half. Forward has two, backward five. */
static double flops(const attention_bench *b, int products)
{
    return (double)products * (double)b->B * (double)b->H * (double)b->T * (double)b->T *
           (double)b->D;
}

static double forward_flops(const attention_bench *b) { return flops(b, 2); }
static double backward_flops(const attention_bench *b) { return flops(b, 5); }

/* ---- results ---- */

static json_t *line_json(const attention_bench *b, const attention_line *l)
{
    if (!(l->forward_ms > 0))
        return json_pack("{s:s, s:s}", "attention", l->way, "why_not", l->why);
    return json_pack("{s:s, s:f, s:f, s:f, s:f}", "attention", l->way, "forward_ms", l->forward_ms,
                     "backward_ms", l->backward_ms, "forward_tflops",
                     forward_flops(b) / l->forward_ms * 1e-9, "backward_tflops",
                     backward_flops(b) / l->backward_ms * 1e-9);
}

static json_t *to_json(void *bench)
{
    const attention_bench *b = bench;
    json_t *results = json_array();
    for (size_t i = 0; i < b->count; i++)
        json_array_append_new(results, line_json(b, &b->lines[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o}", "cpu", sgt_cpu_model(),
                     "device", b->device, "library", b->library, "precision",
                     sgt_precision_words[b->precision], "batch", (json_int_t)b->B, "seq",
                     (json_int_t)b->T, "heads", (json_int_t)b->H, "head_size", (json_int_t)b->D,
                     "results", results);
}

static const attention_line *best_line(const attention_bench *b)
{
    const attention_line *best = NULL;
    for (size_t i = 0; i < b->count; i++) {
        const attention_line *l = &b->lines[i];
        if (l->forward_ms > 0 &&
            (!best || l->forward_ms + l->backward_ms < best->forward_ms + best->backward_ms))
            best = l;
    }
    return best;
}

static void show_direction(const attention_bench *b, double ms, double operations, double scale,
                           int width)
{
    printf("  %*.3f  %8.1f", width, ms, operations / ms * scale);
    if (b->peak_flops > 0) printf("  %5.1f %%", 100 * operations / ms * 1e3 / b->peak_flops);
    else printf("  %7s", "-");
}

static void show(void *bench)
{
    const attention_bench *b = bench;
    char machine[160], device[64], why[80], rows[48], tokens[48], each[48];
    const char *unit = b->cuda ? "TFLOP/s" : "GFLOP/s";
    double scale = b->cuda ? 1e-9 : 1e-6;
    printf("%s\n%s, %s\n", bench_machine(machine, sizeof machine),
           sgt_printable(device, sizeof device, b->device), b->library);
    printf("%s, %s of %s, %s of %zu; causal, the masked half is not counted\n\n",
           sgt_precision_words[b->precision],
           sgt_format_things(rows, sizeof rows, b->B, "row", "rows"),
           sgt_format_things(tokens, sizeof tokens, b->T, "token", "tokens"),
           sgt_format_things(each, sizeof each, b->H, "head", "heads"), b->D);
    printf("  attention   forward ms   %s  of peak   backward ms   %s  of peak\n", unit, unit);
    for (size_t i = 0; i < b->count; i++) {
        const attention_line *l = &b->lines[i];
        printf("%c %-9s", l == best_line(b) ? '*' : ' ', l->way);
        if (l->forward_ms > 0) {
            show_direction(b, l->forward_ms, forward_flops(b), scale, 11);
            show_direction(b, l->backward_ms, backward_flops(b), scale, 12);
            printf("\n");
        } else printf("   %s\n", sgt_printable(why, sizeof why, l->why));
    }
    printf("\n* the fastest, forward and backward together. Peak, a large product of matrices: ");
    if (b->peak_flops > 0) printf("%.1f %s\n", b->peak_flops * scale * 1e-3, unit);
    else printf("not known\n");
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
    if (!cuda && b->precision == SGT_PRECISION_BF16 && sgt_kernels_bf16() == sgt_kernels_cpu())
        return sgt_fail(err, SGT_EUSAGE, "--precision bf16: this CPU's attention is in fp32");
    if (!cuda && b->precision != SGT_PRECISION_FP32 && b->precision != SGT_PRECISION_BF16)
        return sgt_fail(err, SGT_EUSAGE, "--precision %s: a CPU's attention is in fp32 or bf16",
                        sgt_precision_words[b->precision]);
    if ((double)b->B * (double)b->T * (double)b->H * (double)b->D > 0x1p32)
        return sgt_fail(err, SGT_EUSAGE,
                        "%zu x %zu x %zu x %zu numbers are over the 2^32 that are measured", b->B,
                        b->T, b->H, b->D);
    return SGT_OK;
}

static int measure(void *bench, const bench_call *call, sgt_error *err)
{
    attention_bench *b = bench;
    const char *device = shape.device;
    b->cache = sgt_cache_folder();
    b->stop = call->stop;
    int rc = sgt_device_choose(&device, &call->notice, err);
    b->cuda = strcmp(device, "cuda") == 0;
    if (rc == SGT_OK) rc = take_options(b, b->cuda, err);
    if (rc < 0) return rc;
    return b->cuda ? attention_on_cuda(b, err) : attention_on_cpu(b, err);
}

static void release(void *bench) { free(((attention_bench *)bench)->cache); }

static const bench_subcommand attention = {.program = &program,
                                           .output = &shape.output,
                                           .size = sizeof(attention_bench),
                                           .measure = measure,
                                           .json = to_json,
                                           .show = show,
                                           .release = release};

static int bench_attention(int argc, char **argv)
{
    return bench_subcommand_run(&attention, argc, argv);
}

const sgt_command bench_attention_command = {
    "attention", "one layer's attention, forward and backward", &program, bench_attention};
