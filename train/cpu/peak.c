/* peak.c: measures the speed of matrix products on this CPU. A run reports its own speed as a share
 * of it (MFU). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/arena.h"
#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "train/cpu/cpu_backend.h"

#define SPEND 10e-3       /* seconds to measure at least, after one product as warm-up */
#define SPEND_MOST 100e-3 /* seconds to measure at most */
#define CLOSE 1.05        /* ratio of the two fastest times below which nothing disturbed either */
#define MOST 1000         /* maximum number of products, whatever the clock says */

/* Return the time of the fastest of several products in seconds, or 0. Measure until the two
 * fastest agree, because other programs may use the cores. */
static double fastest(const sgt_cpu_shape *shape, size_t n, const float *a, const float *b,
                      float *out)
{
    sgt_gemm *g;
    sgt_gemm_shape s = {.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n, .bf16 = shape->bf16};
    double best = HUGE_VAL, next = HUGE_VAL, spent = 0;
    if (sgt_gemm_plan(&g, &s, shape->threads, NULL) < 0) return 0;
    sgt_gemm_run(g, a, b, NULL, out);
    for (int i = 0; i < MOST && (spent < SPEND || (spent < SPEND_MOST && next > CLOSE * best));
         i++) {
        double from = sgt_now(), took;
        sgt_gemm_run(g, a, b, NULL, out);
        took = sgt_now() - from;
        if (!(took > 0)) continue; /* the clock went back */
        spent += took;
        if (took < best) next = best, best = took;
        else if (took < next) next = took;
    }
    sgt_gemm_free(g);
    return isfinite(best) ? best : 0;
}

/* Fill x with numbers from 1 to 2, valid as floats and as pairs of bfloat16. Zeros would draw less
 * power, so the CPU would run faster. */
static void fill(float *x, size_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t half = 0x3f80u | (i * 2654435761u >> 25), bits = half << 16 | half;
        memcpy(x + i, &bits, sizeof bits);
    }
}

void sgt_cpu_find_peak(sgt_cpu_backend *c)
{
    sgt_arena memory = {0};
    /* The matrix size at which two cores of a Zen 4 are fastest, in float32 and bfloat16. More
     * cores need a larger one. */
    size_t n = c->shape.threads <= 4 ? 512 : c->shape.threads <= 32 ? 1024 : 2048;
    if (sgt_arena_map(&memory, 3 * n * n * sizeof(float), 0, NULL) < 0) return;
    float *a = sgt_arena_take(&memory, n * n, sizeof *a),
          *b = sgt_arena_take(&memory, n * n, sizeof *b),
          *out = sgt_arena_take(&memory, n * n, sizeof *out);
    fill(a, 2 * n * n); /* a and b */
    double seconds = fastest(&c->shape, n, a, b, out);
    sgt_arena_unmap(&memory);
    if (!(seconds > 0)) return;
    snprintf(c->report.peak_name, sizeof c->report.peak_name, "%s, %s, %d thread%s",
             sgt_cpu_model(), c->shape.bf16 ? "bf16" : "fp32", c->shape.threads,
             c->shape.threads == 1 ? "" : "s");
    c->base.peak_flops = 2.0 * (double)(n * n * n) / seconds;
    c->base.peak_name = c->report.peak_name;
}
