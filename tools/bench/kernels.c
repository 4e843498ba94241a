/* kernels.c: the subcommand `sgt-bench kernels`, which times CUDA kernels of a training step one by
 * one. It times all matrix products of a GPT-2 step, each with every epilogue (operation fused into
 * the product) that applies to it, and the causal attention of one layer. libsgt-cuda.so does the
 * timing. */
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/gemm.h"
#include "tools/bench/bench.h"
#include "tools/cli/talk.h"
#include "train/device.h"

/* size of the square matrix product, M = N = K; its three 16-bit matrices take 400 MB in total */
enum { SIDE = 8192 };

static struct {
    const char *kind, *device, *layer;
} o;

static const sgt_option table[] = {
    {.name = "What to run"},
    {"kind", 0, SGT_OPT_CHOICE, &o.kind, "all|gemm|attention",
     "kernels to measure: matrix products (gemm), attention, or all", .def = "all"},
    {"device", 0, SGT_OPT_CHOICE, &o.device, "auto|cuda", "device to use; only CUDA is supported",
     .def = "auto"},
    {"model", .as = BENCH_ROW(MODEL), .to = &bench_config.model},
    {"batch-size", 'b', SGT_OPT_COUNT, &bench_config.batch, "N", "rows per micro-step", .def = "64",
     .min = 1, .max = 1 << 16},
    {"seq-len", .as = BENCH_ROW(SEQ), .to = &bench_config.seq, .def = "1024 on CUDA, 64 on a CPU"},
    {"precision", .as = BENCH_ROW(PRECISION), .to = &bench_config.step.precision,
     .def = "bf16 on CUDA, fp32 on a CPU"},
    {"layer", 0, SGT_OPT_CHOICE, &o.layer, "all|qkv|proj|fc|fcproj|head",
     "layer whose products to measure", .def = "all"},
    {"threads", .as = BENCH_ROW(THREADS), .to = &bench_config.threads},
    BENCH_OUTPUT,
    {0}};

static const sgt_program program = {
    .name = "sgt-bench kernels",
    .usage = "sgt-bench kernels [OPTION]...",
    .about =
        "Measures the CUDA kernels of a GPT-2 training step one by one. Matrix products are "
        "measured with cuBLASLt's fastest algorithm and each epilogue that can be fused into them. "
        "Causal attention is measured in three implementations: sgt's (own), cuDNN's (cudnn), and "
        "one that stores all T x T scores (naive).",
    .options = table,
    .examples =
        "  sgt-bench kernels --batch-size 64 --seq-len 1024\n"
        "  sgt-bench kernels --kind gemm --layer head --device cuda\n"
        "  sgt-bench kernels --kind attention --device cuda --batch-size 64 --seq-len 1024"};

/* A kernel to time, which becomes a row of the table. The exception is the first kernel, a large
 * square matrix product, whose speed is printed as the peak speed of the device. */
typedef struct kernel_line {
    /* shape and number formats of a matrix product; product.m is 0 if the kernel is attention */
    sgt_cuda_gemm_shape product;
    sgt_attention attention; /* implementation of attention */
    int backward;            /* 1 for the backward pass of attention, 0 for the forward pass */
    double flops;            /* number of floating-point operations */
} kernel_line;

static struct {
    sgt_backend_options options; /* options of the training step whose kernels are timed */
    kernel_line lines[BENCH_ROWS];
    const sgt_cuda_library *lib;
    sgt_cuda_device d;
    sgt_cuda_gemms *gemms;
    /* times of the implementation of attention that was measured last */
    sgt_cuda_attention_times times;
} state;

/* ---- which kernels ---- */

static size_t rows_of(void) { return (size_t)state.options.batch * state.options.seq; }

static void add_product(const char *layer, const char *pass, sgt_cuda_gemm_shape s,
                        sgt_cuda_epilogue epilogue)
{
    const sgt_precision precision = state.options.precision;
    static const sgt_cuda_type types[] = {SGT_F32, SGT_F32, SGT_BF16, SGT_F16};
    static const char *const epilogues[] = {"none", "bias", "gelu", "dgelu"};
    /* Skip the products of layers other than --layer, except the first product, which gives the
     * peak speed. */
    if (bench.count && strcmp(o.layer, "all") != 0 && strcmp(o.layer, layer) != 0) return;
    s.lda = s.trans_a ? s.m : s.k;
    s.ldb = s.trans_b ? s.k : s.n;
    s.ldd = s.n;
    s.type = types[precision];
    s.out = s.accumulate ? SGT_F32 : s.type; /* gradients of weights are float32 */
    s.tf32 = precision == SGT_PRECISION_TF32;
    s.epilogue = epilogue;
    state.lines[bench.count] =
        (kernel_line){.product = s, .flops = 2.0 * (double)s.m * (double)s.n * (double)s.k};
    bench_add(json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "layer", layer, "pass", pass, "epilogue",
                        epilogues[epilogue], "m", (json_int_t)s.m, "n", (json_int_t)s.n, "k",
                        (json_int_t)s.k));
}

/* Add the matrix products of a linear layer: y (N, out) = x (N, in) W (in, out) in the forward
 * pass, and dx = dy W^T and dW += x^T dy in the backward pass. Also add the variants with a fused
 * operation: the forward product with the bias and, in layer fc, with GELU; in layer fcproj, dx
 * with the gradient of GELU. */
static void add_linear(const char *layer, size_t in, size_t out)
{
    size_t N = rows_of();
    sgt_cuda_gemm_shape forward = {.m = N, .n = out, .k = in};
    sgt_cuda_gemm_shape input = {.m = N, .n = in, .k = out, .trans_b = 1};
    sgt_cuda_gemm_shape weight = {.m = in, .n = out, .k = N, .trans_a = 1, .accumulate = 1};
    add_product(layer, "forward", forward, SGT_EPILOGUE_NONE);
    add_product(layer, "forward", forward, SGT_EPILOGUE_BIAS);
    if (strcmp(layer, "fc") == 0) add_product(layer, "forward", forward, SGT_EPILOGUE_GELU);
    add_product(layer, "dx", input, SGT_EPILOGUE_NONE);
    if (strcmp(layer, "fcproj") == 0) add_product(layer, "dx", input, SGT_EPILOGUE_DGELU);
    add_product(layer, "dw", weight, SGT_EPILOGUE_NONE);
}

/* Add the large square matrix product, whose speed counts as the peak speed of the device, and all
 * matrix products of a training step. */
static void add_products(void)
{
    size_t C = state.options.model.channels, N = rows_of(), S = SIDE;
    /* number of columns in the matrix product of the output head: the size of the vocabulary,
     * rounded up to a multiple of 64 */
    size_t V = ((size_t)state.options.model.vocab + 63) / 64 * 64;
    add_product("peak", "", (sgt_cuda_gemm_shape){.m = S, .n = S, .k = S}, SGT_EPILOGUE_NONE);
    add_linear("qkv", C, 3 * C);
    add_linear("proj", C, C);
    add_linear("fc", C, 4 * C);
    add_linear("fcproj", 4 * C, C);
    add_product("head", "forward", (sgt_cuda_gemm_shape){.m = N, .n = V, .k = C, .trans_b = 1},
                SGT_EPILOGUE_NONE);
    add_product("head", "dx", (sgt_cuda_gemm_shape){.m = N, .n = C, .k = V}, SGT_EPILOGUE_NONE);
    add_product("head", "dw",
                (sgt_cuda_gemm_shape){.m = V, .n = C, .k = N, .trans_a = 1, .accumulate = 1},
                SGT_EPILOGUE_NONE);
}

/* Add two rows for an implementation of attention: one for the forward pass and one for the
 * backward pass. FLOP/s are computed from the matrix products only. For each head, the forward pass
 * has two products with a (T, T) matrix, and the backward pass has five. Only half of each product
 * counts, because the causal mask makes the other half unnecessary. */
static void add_attention(const char *name, sgt_attention attention)
{
    double product = (double)rows_of() * state.options.seq * state.options.model.channels;
    for (int backward = 0; backward < 2; backward++) {
        state.lines[bench.count] = (kernel_line){
            .attention = attention, .backward = backward, .flops = (backward ? 5 : 2) * product};
        bench_add(json_pack("{s:s, s:s, s:s}", "layer", "attention", "pass",
                            backward ? "backward" : "forward", "attention", name));
    }
}

/* ---- times ---- */

/* Time the matrix product of row i, using the algorithm that the GEMM library chooses for it. */
static int take_product(size_t i, json_t **figures, sgt_error *err)
{
    const sgt_cuda_gemm *p;
    bench_row *r = &bench.rows[i];
    if (i == 0 && state.d.available <= (uint64_t)8 << 30)
        /* not enough memory for the large square matrix product */
        return SGT_OK;
    int rc = state.lib->gemm.plan(&p, state.gemms, &state.lines[i].product, err);
    if (rc < 0 && rc != SGT_EUNSUPPORTED) return rc;
    double ms = rc == SGT_OK ? (double)state.lib->gemm.ms(p) : 0;
    if (ms > 0) *figures = json_pack("{s:f}", "us", 1e3 * ms);
    else
        snprintf(r->why, sizeof r->why, "%s", rc < 0 ? "unsupported by cuBLASLt" : "out of memory");
    return SGT_OK;
}

/* Measure row i, which is a matrix product or one pass of attention. Both passes of an
 * implementation of attention are timed when its first row is measured, in a model with one layer
 * and a tiny vocabulary, in which other work takes little time. If the implementation is
 * unsupported or runs out of memory, both of its rows are skipped. */
static int measure_row(size_t i, json_t **figures, sgt_error *err)
{
    const kernel_line *l = &state.lines[i];
    sgt_backend_options options = state.options;
    options.model.layers = 1;
    options.model.vocab = 64;
    options.optim.kind = SGT_SGD;
    options.attention = l->attention;
    if (l->product.m) return take_product(i, figures, err);
    if (!l->backward) {
        int rc = state.lib->attention(&state.times, &options, sgt_init_parameters, err);
        if (rc == SGT_ENOMEM) rc = SGT_EUNSUPPORTED;
        bench_leave_out(&bench.rows[i + 1], rc, NULL, err);
        if (rc < 0) return bench_leave_out(&bench.rows[i], rc, NULL, err);
    }
    *figures =
        json_pack("{s:f}", "us",
                  1e3 * (double)(l->backward ? state.times.backward_ms : state.times.forward_ms));
    return SGT_OK;
}

static int measure_all(sgt_error *err)
{
    int products = strcmp(o.kind, "attention") != 0,
        rc = sgt_device_cuda(&state.lib, &state.d, err);
    const sgt_cuda_gemms_options options = {.device = state.d.name, .timing = 1};
    if (rc == SGT_OK && products) rc = state.lib->gemm.open(&state.gemms, &options, err);
    if (rc < 0) return rc;
    if (products) add_products();
    if (strcmp(o.kind, "gemm") != 0) {
        add_attention("own", SGT_ATTENTION_OWN);
        add_attention("cudnn", SGT_ATTENTION_CUDNN);
        add_attention("naive", SGT_ATTENTION_NAIVE);
    }
    return bench_take_turns(0, bench.count, 1, measure_row, err);
}

/* ---- results ---- */

static void to_json(json_t *top)
{
    json_t *results = json_array();
    const sgt_backend_options *k = &state.options;
    /* 1 if the first row is the large square matrix product, which gives the peak speed; 0 with
     * --kind attention, which has no such row */
    int has_peak = bench.count && state.lines[0].product.m;
    double square = has_peak ? bench_get(bench.rows[0].result, "us") : 0;
    double peak = square > 0 ? state.lines[0].flops / square * 1e6 : state.times.peak_flops;
    for (size_t i = has_peak; i < bench.count; i++) {
        const bench_row *r = &bench.rows[i];
        double us = bench_get(r->result, "us"),
               speed = us > 0 ? state.lines[i].flops / us * 1e6 : 0;
        if (!(us > 0) && !r->why[0]) continue;
        bench_put(r->result, "tflops", speed * 1e-12);
        if (peak > 0) bench_put(r->result, "of_peak", speed / peak);
        if (r->why[0]) bench_put_text(r->result, "why_not", r->why);
        json_array_append(results, r->result);
    }
    bench_put_all(
        top, json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:o}", "device",
                       state.d.name, "library",
                       state.gemms ? state.lib->gemm.library(state.gemms) : state.times.library,
                       "model", bench_config.model, "precision", sgt_precision_words[k->precision],
                       "batch", (json_int_t)k->batch, "seq", (json_int_t)k->seq, "heads",
                       (json_int_t)k->model.heads, "head_size",
                       (json_int_t)(k->model.channels / k->model.heads), "rows",
                       (json_int_t)rows_of(), "peak_tflops", peak * 1e-12, "results", results));
}

static void show(json_t *top)
{
    static const bench_column columns[] = {{"layer", "layer", .kind = BENCH_TEXT},
                                           {"pass", "pass", .kind = BENCH_TEXT},
                                           {"attention", "attention", .kind = BENCH_TEXT},
                                           {"epilogue", "epilogue", .kind = BENCH_TEXT},
                                           {.key = "m", .head = "m"},
                                           {.key = "n", .head = "n"},
                                           {.key = "k", .head = "k"},
                                           {"us", "us", .decimals = 1},
                                           {"tflops", "TFLOP/s", .decimals = 1},
                                           {"of_peak", "of peak", BENCH_PERCENT, 1, 100},
                                           {0}};
    char device[96];
    double peak = bench_get(top, "peak_tflops");
    printf("%s, %s\n%s, %s, %u x %u tokens\n\n", sgt_printable(device, sizeof device, state.d.name),
           bench_get_text(top, "library"), bench_config.model,
           sgt_precision_words[state.options.precision], state.options.batch, state.options.seq);
    bench_table(json_object_get(top, "results"), columns, "tflops");
    printf("\n* fastest. TFLOP/s of attention do not count the half that the causal mask removes.\n"
           "Peak speed, measured with a large matrix product: ");
    if (peak > 0) printf("%.1f TFLOP/s\n", peak);
    else printf("unknown\n");
}

/* ---- the subcommand ---- */

static int measure(sgt_error *err)
{
    if (strcmp(o.device, "cuda") == 0) bench_config.device = SGT_DEVICE_CUDA;
    int rc = bench_choose_device(err);
    if (rc < 0) return rc;
    if (!bench_on_cuda())
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "needs CUDA (on a CPU, use sgt-bench step or, in the source tree, "
                        "make check-kernels ARGS=--bench)");
    sgt_backend_options *k = &state.options;
    *k = bench_config.step;
    if ((rc = sgt_model_named(&k->model, bench_config.model, err)) < 0) return rc;
    if (k->seq > k->model.positions) k->model.positions = k->seq;
    k->batch = (uint32_t)bench_config.batch;
    k->threads = (int)bench_config.threads;
    if ((double)rows_of() * k->model.channels > 0x1p32)
        return sgt_fail(err, SGT_EUSAGE, "batches of %u x %u x %u numbers exceed the limit of 2^32",
                        k->batch, k->seq, k->model.channels);
    return measure_all(err);
}

static void release(void)
{
    if (state.gemms) state.lib->gemm.close(state.gemms);
}

const bench_subcommand bench_kernels = {.command = {"kernels",
                                                    "how fast a training step's CUDA kernels are",
                                                    &program, bench_run_subcommand},
                                        .measure = measure,
                                        .json = to_json,
                                        .show = show,
                                        .release = release};
