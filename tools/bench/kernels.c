/* kernels.c: sgt-bench kernels: times every matrix product of a GPT-2 step (forward, gradient of
 * the input, gradient of the weight, with each epilogue that it could have) and one layer's causal
 * attention, each by itself. On CUDA, libsgt-cuda.so times them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/gemm.h"
#include "kernels/kernels.h"
#include "loader/base/memory.h"
#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "tools/bench/bench.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "train/device.h"

enum {
    MOST_LINES = 32,
    LEAST_RUNS = 3, /* runs of a kernel on a CPU */
    MOST_RUNS = 64,
    SIDE_CPU = 1536, /* of the square product: larger than the caches, 7 GFLOP */
    SIDE_CUDA = 8192 /* 400 MB in 16 bits */
};

static bench_shape shape = BENCH_SHAPE;
static struct {
    const char *kind, *layer;
    double seconds;
} o = {.kind = "all", .layer = "all", .seconds = 0.2};

static const sgt_option table[] = {{.name = "What to run"},
                                   {"kind", 0, SGT_OPT_CHOICE, &o.kind, "all|gemm|attention",
                                    "matrix products, attention or both", .def = "all"},
                                   BENCH_DEVICE(shape),
                                   BENCH_MODEL(shape),
                                   BENCH_BATCH(shape, "rows of a micro-step", 1 << 16),
                                   BENCH_SEQ(shape, 1 << 20),
                                   BENCH_PRECISION(shape, "number format of the operands"),
                                   {"layer", 0, SGT_OPT_CHOICE, &o.layer,
                                    "all|qkv|proj|fc|fcproj|head",
                                    "layer whose products to measure", .def = "all"},
                                   BENCH_THREADS(shape),
                                   {.name = "How"},
                                   {"seconds", 0, SGT_OPT_REAL, &o.seconds, "X",
                                    "on a CPU: time for each kernel, run three times at least",
                                    .def = "0.2", .min = 0.001, .max = 3600},
                                   BENCH_OUTPUT(shape.output),
                                   {0}};

static const sgt_program program = {
    .name = "sgt-bench kernels",
    .usage = "sgt-bench kernels [OPTION]...",
    .about = "Measures every matrix product of a GPT-2 step, with each epilogue that could stand "
             "behind it, and one layer's\n"
             "causal attention, each by itself. On CUDA: the fastest of cuBLASLt's algorithms, "
             "and our attention (own), cuDNN's\n"
             "(cudnn) and the one that stores T x T scores (naive). On a CPU: training's own "
             "kernels.",
    .options = table,
    .examples =
        "  sgt-bench kernels --batch-size 8 --seq-len 128\n"
        "  sgt-bench kernels --kind gemm --layer head --device cuda\n"
        "  sgt-bench kernels --kind attention --device cuda --batch-size 64 --seq-len 1024"};

/* A kernel: a line of the table. */
typedef struct kernel_line {
    const char *layer, *pass;    /* "qkv", "forward" */
    const char *variant;         /* a product's epilogue; attention's implementation */
    sgt_cuda_gemm_shape product; /* with the device's number types; m is 0: attention */
    double flops, ms;            /* operations; median time, or 0 for the reason in `why` */
    char why[200];
} kernel_line;

typedef struct kernels_bench {
    size_t B, T, H, D, V; /* V as the head pads it */
    sgt_precision precision;
    int cuda, threads;
    char *cache; /* folder for timing results (backend.h) */
    const sgt_stop *stop;
    char device[128], library[96];
    double peak_flops; /* speed of a large square product; 0: not measured */
    kernel_line lines[MOST_LINES];
    size_t count;
} kernels_bench;

/* ---- which kernels ---- */

static void add_product(kernels_bench *b, const char *layer, const char *pass,
                        sgt_cuda_gemm_shape s, sgt_cuda_epilogue epilogue)
{
    static const sgt_cuda_type types[] = {SGT_F32, SGT_F32, SGT_BF16, SGT_F16};
    static const char *const epilogues[] = {"none", "bias",  "bgrad",
                                            "gelu", "dgelu", "dgelu-bgrad"};
    if (strcmp(o.layer, "all") != 0 && strcmp(o.layer, layer) != 0) return;
    s.lda = s.trans_a ? s.m : s.k;
    s.ldb = s.trans_b ? s.k : s.n;
    s.ldd = s.n;
    s.type = types[b->precision];
    s.out = s.accumulate ? SGT_F32 : s.type; /* gradients of weights are float32 */
    s.tf32 = b->precision == SGT_PRECISION_TF32;
    s.epilogue = epilogue;
    b->lines[b->count++] = (kernel_line){.layer = layer,
                                         .pass = pass,
                                         .variant = epilogues[epilogue],
                                         .product = s,
                                         .flops = 2.0 * (double)s.m * (double)s.n * (double)s.k};
}

/* Add the products of a linear layer: y (N, out) = x (N, in) W (in, out), dx = dy W^T, dW += x^T
 * dy. GELU is an epilogue of fc's forward product, and its gradient one of fcproj's dx. */
static void add_linear(kernels_bench *b, const char *layer, size_t in, size_t out)
{
    size_t N = b->B * b->T;
    sgt_cuda_gemm_shape forward = {.m = N, .n = out, .k = in};
    sgt_cuda_gemm_shape input = {.m = N, .n = in, .k = out, .trans_b = 1};
    sgt_cuda_gemm_shape weight = {.m = in, .n = out, .k = N, .trans_a = 1, .accumulate = 1};
    add_product(b, layer, "forward", forward, SGT_EPILOGUE_NONE);
    add_product(b, layer, "forward", forward, SGT_EPILOGUE_BIAS);
    if (strcmp(layer, "fc") == 0) add_product(b, layer, "forward", forward, SGT_EPILOGUE_GELU);
    add_product(b, layer, "dx", input, SGT_EPILOGUE_NONE);
    if (strcmp(layer, "fcproj") == 0) {
        add_product(b, layer, "dx", input, SGT_EPILOGUE_DGELU);
        add_product(b, layer, "dx", input, SGT_EPILOGUE_DGELU_BGRAD);
    }
    add_product(b, layer, "dw", weight, SGT_EPILOGUE_NONE);
    if (strcmp(layer, "qkv") == 0) add_product(b, layer, "dw", weight, SGT_EPILOGUE_BGRAD);
}

static void add_products(kernels_bench *b)
{
    size_t C = b->H * b->D, N = b->B * b->T, V = b->V;
    add_linear(b, "qkv", C, 3 * C);
    add_linear(b, "proj", C, C);
    add_linear(b, "fc", C, 4 * C);
    add_linear(b, "fcproj", 4 * C, C);
    add_product(b, "head", "forward", (sgt_cuda_gemm_shape){.m = N, .n = V, .k = C, .trans_b = 1},
                SGT_EPILOGUE_NONE);
    add_product(b, "head", "dx", (sgt_cuda_gemm_shape){.m = N, .n = C, .k = V}, SGT_EPILOGUE_NONE);
    add_product(b, "head", "dw",
                (sgt_cuda_gemm_shape){.m = V, .n = C, .k = N, .trans_a = 1, .accumulate = 1},
                SGT_EPILOGUE_NONE);
}

/* Add both passes of an implementation of attention, and return the first. Of products with (T, T)
 * scores, whose masked half is not counted, forward has two and backward five. */
static kernel_line *add_attention(kernels_bench *b, const char *name)
{
    kernel_line *l = &b->lines[b->count];
    double product = (double)b->B * (double)b->H * (double)b->T * (double)b->T * (double)b->D;
    l[0] = (kernel_line){"attention", "forward", name, .flops = 2 * product};
    l[1] = (kernel_line){"attention", "backward", name, .flops = 5 * product};
    b->count += 2;
    return l;
}

/* ---- on a CPU ---- */

enum { MOST_PARTS = 6 };

/* Memory for the operands of a kernel, as large as the largest of any. */
typedef struct operands {
    sgt_arena memory;
    float *part[MOST_PARTS];
} operands;

/* Allocate the parts, of so many floats each, and fill them with small numbers, so that no product
 * overflows. With `halves`, the upper and the lower half of each float are the same bfloat16. */
static int allocate(operands *x, const size_t floats[MOST_PARTS], int halves, sgt_error *err)
{
    size_t all = 0, at[MOST_PARTS];
    for (int i = 0; i < MOST_PARTS; i++) {
        at[i] = all;
        all += (floats[i] + 15) / 16 * 16;
    }
    int rc = sgt_arena_map(&x->memory, all * sizeof(float), 1, err);
    if (rc < 0) return rc;
    float *p = (float *)(void *)x->memory.base;
    uint32_t random = 1, bits;
    for (size_t i = 0; i < all; i++) {
        random = random * 1664525u + 1013904223u;
        p[i] = (float)(random >> 8) * 0x1p-24f - 0.5f;
        memcpy(&bits, &p[i], sizeof bits);
        if (halves) bits = (bits & 0xffff0000u) | bits >> 16;
        memcpy(&p[i], &bits, sizeof bits);
    }
    for (int i = 0; i < MOST_PARTS; i++) x->part[i] = p + at[i];
    return SGT_OK;
}

/* Run a kernel once and set *seconds to the time that it took. */
typedef int kernel_run(void *ctx, double *seconds, sgt_error *err);

static int time_kernel(double *ms, const kernels_bench *b, kernel_run *run, void *ctx,
                       sgt_error *err)
{
    double times[MOST_RUNS], began = sgt_now(), seconds;
    size_t n = 0;
    int rc = run(ctx, &seconds, err); /* warm-up */
    while (rc == SGT_OK && (n < LEAST_RUNS || (n < MOST_RUNS && sgt_now() - began < o.seconds))) {
        if (sgt_stopped(b->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        rc = run(ctx, &seconds, err);
        times[n++] = seconds * 1e3;
    }
    *ms = bench_median(times, n);
    return rc;
}

enum { PART_A, PART_B, PART_OUT, PART_BIAS };

typedef struct cpu_product {
    operands x;
    sgt_gemm *gemm;
} cpu_product;

static int run_product(void *ctx, double *seconds, sgt_error *err)
{
    cpu_product *p = ctx;
    double from = sgt_now();
    (void)err;
    sgt_gemm_run(p->gemm, p->x.part[PART_A], p->x.part[PART_B], p->x.part[PART_BIAS],
                 p->x.part[PART_OUT]);
    *seconds = sgt_now() - from;
    return SGT_OK;
}

static int time_product(double *ms, const kernels_bench *b, cpu_product *p,
                        const sgt_cuda_gemm_shape *s, sgt_error *err)
{
    sgt_gemm_shape g = {.m = s->m,
                        .n = s->n,
                        .k = s->k,
                        .trans_a = s->trans_a,
                        .trans_b = s->trans_b,
                        .lda = s->lda,
                        .ldb = s->ldb,
                        .ldc = s->ldd,
                        .bias = s->epilogue == SGT_EPILOGUE_BIAS,
                        .accumulate = s->accumulate,
                        .bf16 = s->type == SGT_BF16};
    int rc = sgt_gemm_plan(&p->gemm, &g, b->threads, err);
    if (rc < 0) return rc;
    rc = time_kernel(ms, b, run_product, p, err);
    sgt_gemm_free(p->gemm);
    return rc;
}

/* Time the square product, which tells the peak, and the products that were added. */
static int time_products_on_cpu(kernels_bench *b, sgt_error *err)
{
    cpu_product p = {0};
    int bf16 = b->precision == SGT_PRECISION_BF16;
    const size_t S = SIDE_CPU;
    sgt_cuda_gemm_shape square = {
        .m = S, .n = S, .k = S, .lda = S, .ldb = S, .ldd = S, .type = bf16 ? SGT_BF16 : SGT_F32};
    size_t floats[MOST_PARTS] = {S * S, S * S, S * S, S};
    for (size_t i = 0; i < b->count; i++) {
        const sgt_cuda_gemm_shape *s = &b->lines[i].product;
        const size_t need[] = {s->m * s->k, s->k * s->n, s->m * s->n, s->n};
        for (int part = PART_A; part <= PART_BIAS; part++)
            if (need[part] > floats[part]) floats[part] = need[part];
    }
    double ms = 0;
    int rc = allocate(&p.x, floats, bf16, err);
    if (rc == SGT_OK) rc = time_product(&ms, b, &p, &square, err);
    if (rc == SGT_OK) b->peak_flops = 2.0 * (double)(S * S * S) / ms * 1e3;
    for (size_t i = 0; i < b->count && rc == SGT_OK; i++) {
        kernel_line *l = &b->lines[i];
        if (l->product.epilogue <= SGT_EPILOGUE_BIAS)
            rc = time_product(&l->ms, b, &p, &l->product, err);
        else snprintf(l->why, sizeof l->why, "a kernel of its own here");
    }
    sgt_arena_unmap(&p.x.memory);
    return rc;
}

enum { PART_QKV, PART_DQKV, PART_ATTENTION, PART_DATTENTION, PART_LSE, PART_SCRATCH };

/* Threads share the heads of all rows. */
typedef struct cpu_attention {
    const kernels_bench *b;
    const sgt_kernels *k;
    operands x; /* shapes: (B, T, 3C) twice, (B, T, C) twice, (B, H, T), (threads, scratch) */
    size_t scratch;
    bench_work *pass;
} cpu_attention;

/* Compute head i of the B*H heads. bench_run may pass an i past the last one; it is ignored. */
static int head_forward(void *ctx, int thread, uint64_t i, sgt_error *err)
{
    const cpu_attention *a = ctx;
    size_t T = a->b->T, D = a->b->D, C = a->b->H * D;
    size_t row = i / a->b->H * T, column = i % a->b->H * D;
    const float *q = a->x.part[PART_QKV] + row * 3 * C + column;
    (void)err;
    if (i < a->b->B * a->b->H)
        a->k->attention(a->x.part[PART_ATTENTION] + row * C + column, C,
                        a->x.part[PART_LSE] + i * T, q, q + C, q + 2 * C, 3 * C, T, D,
                        (float)(1 / sqrt((double)D)), NULL, NULL,
                        a->x.part[PART_SCRATCH] + (size_t)thread * a->scratch);
    return SGT_OK;
}

static int head_backward(void *ctx, int thread, uint64_t i, sgt_error *err)
{
    const cpu_attention *a = ctx;
    size_t T = a->b->T, D = a->b->D, C = a->b->H * D;
    size_t row = i / a->b->H * T, column = i % a->b->H * D, at = row * C + column;
    const float *q = a->x.part[PART_QKV] + row * 3 * C + column;
    float *dq = a->x.part[PART_DQKV] + row * 3 * C + column;
    (void)err;
    if (i < a->b->B * a->b->H)
        a->k->attention_backward(dq, dq + C, dq + 2 * C, 3 * C, a->x.part[PART_DATTENTION] + at,
                                 a->x.part[PART_ATTENTION] + at, C, a->x.part[PART_LSE] + i * T, q,
                                 q + C, q + 2 * C, 3 * C, T, D, (float)(1 / sqrt((double)D)), NULL,
                                 NULL, a->x.part[PART_SCRATCH] + (size_t)thread * a->scratch);
    return SGT_OK;
}

static int run_heads(void *ctx, double *seconds, sgt_error *err)
{
    cpu_attention *a = ctx;
    size_t heads = a->b->B * a->b->H, threads = (size_t)a->b->threads;
    uint64_t units;
    bench_slice s = {
        .most = (heads + threads - 1) / threads, .seconds = 1e9, .threads = a->b->threads};
    return bench_run(&s, a->pass, a, &units, seconds, err);
}

static int time_attention_on_cpu(kernels_bench *b, sgt_error *err)
{
    int bf16 = b->precision == SGT_PRECISION_BF16;
    cpu_attention a = {.b = b, .k = bf16 ? sgt_kernels_bf16() : sgt_kernels_cpu()};
    kernel_line *l = add_attention(b, "own");
    a.scratch = (a.k->attention_scratch(b->T, b->D) + 15) / 16 * 16;
    size_t N = b->B * b->T, C = b->H * b->D;
    int rc = allocate(
        &a.x,
        (size_t[]){N * 3 * C, N * 3 * C, N * C, N * C, N * b->H, (size_t)b->threads * a.scratch}, 0,
        err);
    a.pass = head_forward;
    if (rc == SGT_OK) rc = time_kernel(&l[0].ms, b, run_heads, &a, err);
    a.pass = head_backward;
    if (rc == SGT_OK) rc = time_kernel(&l[1].ms, b, run_heads, &a, err);
    sgt_arena_unmap(&a.x.memory);
    return rc;
}

static int measure_on_cpu(kernels_bench *b, sgt_error *err)
{
    snprintf(b->device, sizeof b->device, "%d thread%s", b->threads, b->threads == 1 ? "" : "s");
    snprintf(b->library, sizeof b->library, "%s", SGT_GEMM_LIBRARY);
    int rc = time_products_on_cpu(b, err);
    if (rc < 0 || strcmp(o.kind, "gemm") == 0) return rc;
    return time_attention_on_cpu(b, err);
}

/* ---- on CUDA ---- */

static int time_products_on_cuda(kernels_bench *b, const sgt_cuda_gemm_calls *calls,
                                 sgt_cuda_gemms *g, sgt_error *err)
{
    const sgt_cuda_gemm *p;
    for (size_t i = 0; i < b->count; i++) {
        kernel_line *l = &b->lines[i];
        if (sgt_stopped(b->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        int rc = calls->plan(&p, g, &l->product, err);
        if (rc < 0 && rc != SGT_EUNSUPPORTED) return rc;
        l->ms = rc == SGT_OK ? (double)calls->ms(p) : 0;
        if (!(l->ms > 0))
            snprintf(l->why, sizeof l->why, "%s",
                     rc < 0 ? "not in the library" : "no room to time it");
    }
    return SGT_OK;
}

static int measure_products_on_cuda(kernels_bench *b, const sgt_cuda_library *lib,
                                    const sgt_cuda_device *d, sgt_error *err)
{
    const sgt_cuda_gemm_calls *calls = lib->gemm;
    const sgt_cuda_gemms_options options = {.device = d->name, .timing = 1};
    const size_t S = SIDE_CUDA;
    sgt_cuda_gemms *g;
    const sgt_cuda_gemm *p;
    int rc = calls->open(&g, &options, err);
    if (rc < 0) return rc;
    snprintf(b->library, sizeof b->library, "%s", calls->library(g));
    if (d->available > (uint64_t)8 << 30) {
        sgt_cuda_gemm_shape square = b->lines[0].product;
        square = (sgt_cuda_gemm_shape){.m = S,
                                       .n = S,
                                       .k = S,
                                       .lda = S,
                                       .ldb = S,
                                       .ldd = S,
                                       .type = square.type,
                                       .out = square.type,
                                       .tf32 = square.tf32};
        rc = calls->plan(&p, g, &square, err);
        if (rc == SGT_OK && calls->ms(p) > 0)
            b->peak_flops = 2.0 * (double)(S * S * S) / calls->ms(p) * 1e3;
    }
    if (rc == SGT_OK) rc = time_products_on_cuda(b, calls, g, err);
    calls->close(g);
    return rc;
}

/* Measure one implementation in a backend with one layer, where everything but attention is small.
 * If it is unsupported or does not fit in memory, its lines get the reason. */
static int time_attention_on_cuda(kernels_bench *b, const sgt_cuda_library *lib, const char *name,
                                  sgt_attention implementation, sgt_error *err)
{
    sgt_cuda_attention_times t;
    kernel_line *l = add_attention(b, name);
    sgt_backend_options options = {.model = {.layers = 1,
                                             .channels = (uint32_t)(b->H * b->D),
                                             .heads = (uint32_t)b->H,
                                             .vocab = 64,
                                             .positions = (uint32_t)b->T,
                                             .eps = 1e-5f},
                                   .optim = {.kind = SGT_SGD},
                                   .batch = (uint32_t)b->B,
                                   .seq = (uint32_t)b->T,
                                   .accum = 1,
                                   .threads = b->threads,
                                   .precision = b->precision,
                                   .attention = implementation,
                                   .cache = b->cache};
    if (sgt_stopped(b->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
    int rc = lib->attention(&t, &options, err);
    if (rc == SGT_EUNSUPPORTED || rc == SGT_ENOMEM) {
        for (int i = 0; i < 2; i++) snprintf(l[i].why, sizeof l->why, "%.199s", err->text);
        return SGT_OK;
    }
    if (rc < 0) return rc;
    l[0].ms = (double)t.forward_ms;
    l[1].ms = (double)t.backward_ms;
    if (!b->library[0]) snprintf(b->library, sizeof b->library, "%s", t.library);
    if (!(b->peak_flops > 0)) b->peak_flops = t.peak_flops;
    return SGT_OK;
}

static int measure_on_cuda(kernels_bench *b, sgt_error *err)
{
    const sgt_cuda_library *lib;
    sgt_cuda_device d;
    int rc = sgt_device_cuda(&lib, &d, err);
    if (rc < 0) return rc;
    snprintf(b->device, sizeof b->device, "%.127s", d.name);
    if (b->count) rc = measure_products_on_cuda(b, lib, &d, err);
    if (rc < 0 || strcmp(o.kind, "gemm") == 0) return rc;
    const kernel_line *own = &b->lines[b->count];
    rc = time_attention_on_cuda(b, lib, "own", SGT_ATTENTION_OWN, err);
    /* If tensor cores are unsupported, training uses tiles without them. */
    if (rc == SGT_OK && own->why[0])
        rc = time_attention_on_cuda(b, lib, "tiled", SGT_ATTENTION_AUTO, err);
    if (rc == SGT_OK) rc = time_attention_on_cuda(b, lib, "cudnn", SGT_ATTENTION_CUDNN, err);
    if (rc == SGT_OK) rc = time_attention_on_cuda(b, lib, "naive", SGT_ATTENTION_NAIVE, err);
    return rc;
}

/* ---- results ---- */

static json_t *line_json(const kernels_bench *b, const kernel_line *l)
{
    const sgt_cuda_gemm_shape *s = &l->product;
    json_t *j = s->m ? json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "layer", l->layer, "pass",
                                 l->pass, "epilogue", l->variant, "m", (json_int_t)s->m, "n",
                                 (json_int_t)s->n, "k", (json_int_t)s->k)
                     : json_pack("{s:s, s:s, s:s}", "layer", l->layer, "pass", l->pass, "attention",
                                 l->variant);
    if (!j) return NULL;
    if (!(l->ms > 0)) json_object_set_new(j, "why_not", json_string(l->why));
    bench_put(j, "us", 1e3 * l->ms);
    bench_put(j, "tflops", l->ms > 0 ? l->flops / l->ms * 1e-9 : 0);
    if (l->ms > 0 && b->peak_flops > 0)
        bench_put(j, "of_peak", l->flops / l->ms * 1e3 / b->peak_flops);
    return j;
}

static json_t *to_json(void *bench)
{
    const kernels_bench *b = bench;
    json_t *results = json_array();
    for (size_t i = 0; i < b->count; i++)
        json_array_append_new(results, line_json(b, &b->lines[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:o}", "cpu",
                     sgt_cpu_model(), "device", b->device, "library", b->library, "model",
                     shape.model, "precision", sgt_precision_words[b->precision], "batch",
                     (json_int_t)b->B, "seq", (json_int_t)b->T, "heads", (json_int_t)b->H,
                     "head_size", (json_int_t)b->D, "rows", (json_int_t)b->B * (json_int_t)b->T,
                     "peak_tflops", b->peak_flops * 1e-12, "results", results);
}

static void show(void *bench)
{
    const kernels_bench *b = bench;
    const char *unit = b->cuda ? "TFLOP/s" : "GFLOP/s";
    const bench_column columns[] = {{"layer", "layer", .kind = BENCH_TEXT},
                                    {"pass", "pass", .kind = BENCH_TEXT},
                                    {"variant", "variant", .kind = BENCH_TEXT},
                                    {.key = "m", .head = "m"},
                                    {.key = "n", .head = "n"},
                                    {.key = "k", .head = "k"},
                                    {"us", "us", .decimals = 1},
                                    {"tflops", unit, .decimals = 1, .scale = b->cuda ? 1 : 1e3},
                                    {"of_peak", "of peak", BENCH_PERCENT, 1, 100},
                                    {0}};
    char machine[160], device[96];
    json_t *top = to_json(bench), *rows = json_object_get(top, "results");
    for (size_t i = 0; i < b->count; i++)
        json_object_set_new(json_array_get(rows, i), "variant", json_string(b->lines[i].variant));
    printf("%s\n%s, %s\n", bench_machine(machine, sizeof machine),
           sgt_printable(device, sizeof device, b->device), b->library);
    printf("%s, %s, %zu x %zu tokens\n\n", shape.model, sgt_precision_words[b->precision], b->B,
           b->T);
    bench_table(rows, columns, "tflops");
    printf("\n* the fastest. Attention is causal; its masked half is not counted.\n"
           "Peak, a large product of matrices: ");
    if (b->peak_flops > 0) printf("%.1f %s\n", b->peak_flops * (b->cuda ? 1e-12 : 1e-9), unit);
    else printf("not known\n");
    json_decref(top);
}

/* ---- the subcommand ---- */

static int check_precision(const kernels_bench *b, sgt_error *err)
{
    int bf16 = strcmp(o.kind, "attention") == 0 ? sgt_kernels_bf16() != sgt_kernels_cpu()
                                                : sgt_gemm_has_bf16();
    if (b->cuda || b->precision == SGT_PRECISION_FP32) return SGT_OK;
    if (bf16 && b->precision == SGT_PRECISION_BF16) return SGT_OK;
    return sgt_fail(err, SGT_EUSAGE, "--precision %s: this CPU's kernels are in fp32%s",
                    sgt_precision_words[b->precision], bf16 ? " or bf16" : "");
}

static int read_options(kernels_bench *b, sgt_error *err)
{
    sgt_model m;
    int rc = sgt_model_named(&m, shape.model, err);
    if (rc < 0) return rc;
    b->B = bench_batch(&shape, b->cuda);
    b->T = bench_seq(&shape, b->cuda);
    b->H = m.heads;
    b->D = m.channels / m.heads;
    b->V = b->cuda ? (m.vocab + 63) / 64 * 64 : m.vocab;
    b->precision = bench_precision(&shape, b->cuda);
    b->threads = bench_threads(&shape);
    if ((double)b->B * (double)b->T * (double)m.channels > 0x1p32)
        return sgt_fail(err, SGT_EUSAGE,
                        "%zu x %zu x %u numbers are over the 2^32 that are measured", b->B, b->T,
                        m.channels);
    if (strcmp(o.kind, "attention") != 0) add_products(b);
    return check_precision(b, err);
}

static int measure(void *bench, const bench_call *call, sgt_error *err)
{
    kernels_bench *b = bench;
    const char *device = shape.device;
    b->cache = sgt_cache_folder();
    b->stop = call->stop;
    int rc = sgt_device_choose(&device, &call->notice, err);
    if (rc < 0) return rc;
    b->cuda = strcmp(device, "cuda") == 0;
    if ((rc = read_options(b, err)) < 0) return rc;
    return b->cuda ? measure_on_cuda(b, err) : measure_on_cpu(b, err);
}

static void release(void *bench) { free(((kernels_bench *)bench)->cache); }

static const bench_subcommand kernels = {.program = &program,
                                         .output = &shape.output,
                                         .size = sizeof(kernels_bench),
                                         .measure = measure,
                                         .json = to_json,
                                         .show = show,
                                         .release = release};

static int bench_kernels(int argc, char **argv)
{
    return bench_subcommand_run(&kernels, argc, argv);
}

const sgt_command bench_kernels_command = {
    "kernels", "each matrix product and the attention of a training step", &program, bench_kernels};
