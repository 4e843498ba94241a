/* gemm.c: sgt-bench gemm: measures every matrix product of a GPT-2 step: forward, gradient of the
 * input and gradient of the weight, with each epilogue that it could have. */
#include "tools/bench/gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "kernels/kernels.h"
#include "tools/bench/bench.h"
#include "tools/bench/shape.h"
#include "tools/cli/talk.h"

static bench_shape shape = BENCH_SHAPE;
static double seconds = 0.2;
static const char *only = "all";

static const sgt_option table[] = {{.name = "What to run"},
                                   BENCH_DEVICE(shape),
                                   BENCH_MODEL(shape),
                                   BENCH_BATCH(shape, "rows of a micro-step", 1 << 16),
                                   BENCH_SEQ(shape, "64", 1 << 15),
                                   BENCH_PRECISION(shape, "number format of the matrices"),
                                   {"layer", 0, SGT_OPT_CHOICE, &only,
                                    "all|qkv|proj|fc|fcproj|head",
                                    "layer whose products to measure", .def = "all"},
                                   BENCH_THREADS(shape),
                                   {.name = "How"},
                                   {"seconds", 0, SGT_OPT_REAL, &seconds, "X",
                                    "on a CPU: time for each product, run three times at least",
                                    .def = "0.2", .min = 0.001, .max = 3600},
                                   BENCH_OUTPUT(shape.output),
                                   {0}};

static const sgt_program program = {
    .name = "sgt-bench gemm",
    .usage = "sgt-bench gemm [OPTION]...",
    .about = "Measures every matrix product of a GPT-2 step by itself, with each epilogue that "
             "could stand behind it: on\n"
             "CUDA the fastest of cuBLASLt's algorithms, from cold memory; on a CPU training's own "
             "in float32, or bfloat16\n"
             "where it multiplies that.",
    .options = table,
    .examples = "  sgt-bench gemm --batch-size 8 --seq-len 128\n"
                "  sgt-bench gemm --device cuda --batch-size 64 --seq-len 1024 --precision bf16"};

/* ---- which products ---- */

static const char *const epilogues[] = {"none", "bias", "bgrad", "gelu", "dgelu", "dgelu-bgrad"};

static void add(gemm_bench *b, const char *layer, const char *pass, sgt_cuda_gemm_shape s,
                sgt_cuda_epilogue epilogue)
{
    if (strcmp(only, "all") != 0 && strcmp(only, layer) != 0) return;
    s.lda = s.trans_a ? s.m : s.k;
    s.ldb = s.trans_b ? s.k : s.n;
    s.ldd = s.n;
    s.type = b->type;
    s.out = s.accumulate ? SGT_F32 : b->type;
    s.tf32 = b->tf32;
    s.epilogue = epilogue;
    b->lines[b->count++] =
        (gemm_line){.layer = layer, .pass = pass, .epilogue = epilogues[epilogue], .shape = s};
}

/* Add the products of a linear layer: y (N, out) = x (N, in) W (in, out), dx = dy W^T, dW += x^T
 * dy. GELU is an epilogue of fc's forward product, and its gradient one of fcproj's dx. */
static void add_linear(gemm_bench *b, const char *layer, size_t in, size_t out)
{
    sgt_cuda_gemm_shape forward = {.m = b->rows, .n = out, .k = in};
    sgt_cuda_gemm_shape input = {.m = b->rows, .n = in, .k = out, .trans_b = 1};
    sgt_cuda_gemm_shape weight = {.m = in, .n = out, .k = b->rows, .trans_a = 1, .accumulate = 1};
    add(b, layer, "forward", forward, SGT_EPILOGUE_NONE);
    add(b, layer, "forward", forward, SGT_EPILOGUE_BIAS);
    if (strcmp(layer, "fc") == 0) add(b, layer, "forward", forward, SGT_EPILOGUE_GELU);
    add(b, layer, "dx", input, SGT_EPILOGUE_NONE);
    if (strcmp(layer, "fcproj") == 0) {
        add(b, layer, "dx", input, SGT_EPILOGUE_DGELU);
        add(b, layer, "dx", input, SGT_EPILOGUE_DGELU_BGRAD);
    }
    add(b, layer, "dw", weight, SGT_EPILOGUE_NONE);
    if (strcmp(layer, "qkv") == 0) add(b, layer, "dw", weight, SGT_EPILOGUE_BGRAD);
}

static int list_products(gemm_bench *b, sgt_error *err)
{
    size_t C = b->channels, N = b->rows, V = b->vocab;
    if (!(b->lines = calloc(32, sizeof *b->lines))) return sgt_fail_memory(err, NULL);
    add_linear(b, "qkv", C, 3 * C);
    add_linear(b, "proj", C, C);
    add_linear(b, "fc", C, 4 * C);
    add_linear(b, "fcproj", 4 * C, C);
    add(b, "head", "forward", (sgt_cuda_gemm_shape){.m = N, .n = V, .k = C, .trans_b = 1},
        SGT_EPILOGUE_NONE);
    add(b, "head", "dx", (sgt_cuda_gemm_shape){.m = N, .n = C, .k = V}, SGT_EPILOGUE_NONE);
    add(b, "head", "dw",
        (sgt_cuda_gemm_shape){.m = V, .n = C, .k = N, .trans_a = 1, .accumulate = 1},
        SGT_EPILOGUE_NONE);
    return SGT_OK;
}

/* ---- results ---- */

static const char *precision_name(const gemm_bench *b)
{
    static const sgt_precision of[] = {SGT_PRECISION_FP32, SGT_PRECISION_BF16, SGT_PRECISION_FP16};
    return sgt_precision_words[b->tf32 ? SGT_PRECISION_TF32 : of[b->type]];
}

static json_t *line_json(const gemm_bench *b, const gemm_line *l)
{
    const sgt_cuda_gemm_shape *s = &l->shape;
    json_t *j =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "layer", l->layer, "pass", l->pass, "epilogue",
                  l->epilogue, "m", (json_int_t)s->m, "n", (json_int_t)s->n, "k", (json_int_t)s->k);
    if (!j) return NULL;
    if (l->ms > 0) {
        json_object_set_new(j, "us", json_real(1e3 * l->ms));
        json_object_set_new(j, "tflops", json_real(gemm_flops(s) / l->ms * 1e-9));
    } else json_object_set_new(j, "why_not", json_string(l->why));
    if (l->ms > 0 && b->peak_flops > 0)
        json_object_set_new(j, "of_peak", json_real(gemm_flops(s) / l->ms * 1e3 / b->peak_flops));
    return j;
}

static json_t *to_json(void *bench)
{
    const gemm_bench *b = bench;
    json_t *results = json_array();
    for (size_t i = 0; i < b->count; i++)
        json_array_append_new(results, line_json(b, &b->lines[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:f, s:o}", "cpu", sgt_cpu_model(), "device",
                     b->device, "library", b->library, "model", shape.model, "precision",
                     precision_name(b), "rows", (json_int_t)b->rows, "peak_tflops",
                     b->peak_flops * 1e-12, "results", results);
}

static double line_flops(const gemm_line *l)
{
    return l->ms > 0 ? gemm_flops(&l->shape) / l->ms * 1e3 : 0;
}

static const gemm_line *best_line(const gemm_bench *b)
{
    const gemm_line *best = &b->lines[0];
    for (size_t i = 1; i < b->count; i++)
        if (line_flops(&b->lines[i]) > line_flops(best)) best = &b->lines[i];
    return best;
}

static void show(void *bench)
{
    const gemm_bench *b = bench;
    char machine[160], device[96], why[32], rows[48];
    const char *unit = b->cuda ? "TFLOP/s" : "GFLOP/s";
    double scale = b->cuda ? 1e-12 : 1e-9;
    printf("%s\n%s, %s\n", bench_machine(machine, sizeof machine),
           sgt_printable(device, sizeof device, b->device), b->library);
    printf("%s, %s, %s", shape.model, precision_name(b),
           sgt_format_things(rows, sizeof rows, b->rows, "row", "rows"));
    if (b->peak_flops > 0)
        printf("; peak, a large square product: %.1f %s", b->peak_flops * scale, unit);
    printf(
        "\n\n  layer   pass     epilogue         m        n        k          us   %s  of peak\n",
        unit);
    for (size_t i = 0; i < b->count; i++) {
        const gemm_line *l = &b->lines[i];
        const sgt_cuda_gemm_shape *s = &l->shape;
        printf("%c %-7s %-8s %-11s %7zu  %7zu  %7zu", l == best_line(b) ? '*' : ' ', l->layer,
               l->pass, l->epilogue, s->m, s->n, s->k);
        if (l->ms > 0) printf("  %10.1f  %8.1f", 1e3 * l->ms, gemm_flops(s) / l->ms * 1e3 * scale);
        else printf("  %s", sgt_printable(why, sizeof why, l->why));
        if (l->ms > 0 && b->peak_flops > 0)
            printf("  %5.1f %%", 100 * gemm_flops(s) / l->ms * 1e3 / b->peak_flops);
        printf("\n");
    }
    printf("\n* the fastest\n");
}

/* ---- the subcommand ---- */

static int check_cpu(sgt_precision p, sgt_error *err)
{
    if (p == SGT_PRECISION_FP32 || (p == SGT_PRECISION_BF16 && sgt_gemm_has_bf16())) return SGT_OK;
    return sgt_fail(err, SGT_EUSAGE, "--precision %s: this CPU's products are in fp32%s",
                    sgt_precision_words[p], sgt_gemm_has_bf16() ? " or bf16" : "");
}

static int take_options(gemm_bench *b, int cuda, sgt_error *err)
{
    static const sgt_cuda_type types[] = {SGT_F32, SGT_F32, SGT_BF16, SGT_F16};
    sgt_precision p = bench_precision(&shape, cuda);
    sgt_model m;
    int rc = sgt_model_named(&m, shape.model, err);
    if (rc < 0 || (!cuda && (rc = check_cpu(p, err)) < 0)) return rc;
    b->rows = (size_t)bench_batch(&shape, cuda) * bench_seq(&shape, cuda, 64);
    b->channels = m.channels;
    b->vocab = cuda ? (m.vocab + 63) / 64 * 64 : m.vocab; /* padded as each backend pads it */
    b->cuda = cuda;
    b->type = types[p];
    b->tf32 = p == SGT_PRECISION_TF32;
    b->threads = bench_threads(&shape);
    b->seconds = seconds;
    return list_products(b, err);
}

static int measure_on(gemm_bench *b, int cuda, sgt_error *err)
{
    int rc = take_options(b, cuda, err);
    if (rc == SGT_OK) rc = cuda ? gemm_on_cuda(b, err) : gemm_on_cpu(b, err);
    if (rc < 0) {
        free(b->lines);
        *b = (gemm_bench){.stop = b->stop};
    }
    return rc;
}

static int measure(void *bench, const bench_call *call, sgt_error *err)
{
    gemm_bench *b = bench;
    int rc = SGT_EUNSUPPORTED, cpu = strcmp(shape.device, "cpu") == 0;
    b->stop = call->stop;
    if (!cpu) rc = measure_on(b, 1, err);
    if (cpu || (rc == SGT_EUNSUPPORTED && strcmp(shape.device, "auto") == 0))
        rc = measure_on(b, 0, err);
    return rc;
}

static void release(void *bench) { free(((gemm_bench *)bench)->lines); }

static const bench_subcommand gemm = {.program = &program,
                                      .output = &shape.output,
                                      .size = sizeof(gemm_bench),
                                      .measure = measure,
                                      .json = to_json,
                                      .show = show,
                                      .release = release};

static int bench_gemm(int argc, char **argv) { return bench_subcommand_run(&gemm, argc, argv); }

const sgt_command bench_gemm_command = {"gemm", "each matrix product of a training step", &program,
                                        bench_gemm};
