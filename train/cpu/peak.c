/* peak.c: what products of matrices reach on this CPU, so that a run can say what part of it is put to use. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "cpu_backend.h"

#define SPEND 10e-3       /* seconds at least, after a first product that prepares, */
#define SPEND_MOST 100e-3 /* and at most */
#define CLOSE 1.05        /* the next fastest takes at most so many times as long: nothing disturbed either */
#define MOST 1000         /* products, whatever the clock says */

/* Seconds of the fastest of several products; 0 where there is none. Other programs may have the cores meanwhile: more
 * products are measured until two of them agree on what the fastest takes. */
static double fastest(const sgt_cpu_backend *c, size_t n, const float *a, const float *b, float *out)
{
    sgt_gemm *g;
    sgt_gemm_shape s = {.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n, .bf16 = c->bf16};
    double best = HUGE_VAL, next = HUGE_VAL, spent = 0;
    if (sgt_gemm_plan(&g, &s, c->threads, NULL) < 0) return 0;
    sgt_gemm_run(g, a, b, NULL, out);
    for (int i = 0; i < MOST && (spent < SPEND || (spent < SPEND_MOST && next > CLOSE * best)); i++) {
        double from = sgt_now(), took;
        sgt_gemm_run(g, a, b, NULL, out);
        took = sgt_now() - from;
        if (!(took > 0)) continue; /* a clock that went back */
        spent += took;
        if (took < best) next = best, best = took;
        else if (took < next) next = took;
    }
    sgt_gemm_free(g);
    return isfinite(best) ? best : 0;
}

/* Numbers from 1 to 2, the same read as one float or as two bfloat16: what is multiplied by zeros draws less power. */
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
    /* The side at which two cores of a Zen 4 are at their fastest, in float32 and in bfloat16; more have to share
     * it. */
    size_t n = c->threads <= 4 ? 512 : c->threads <= 32 ? 1024 : 2048;
    if (sgt_arena_map(&memory, 3 * n * n * sizeof(float), 0, NULL) < 0) return;
    float *a = sgt_arena_take(&memory, n * n, sizeof *a), *b = sgt_arena_take(&memory, n * n, sizeof *b),
          *out = sgt_arena_take(&memory, n * n, sizeof *out);
    fill(a, 2 * n * n); /* b too */
    double seconds = fastest(c, n, a, b, out);
    sgt_arena_unmap(&memory);
    if (!(seconds > 0)) return;
    snprintf(c->peak_name, sizeof c->peak_name, "%s, %s, %d thread%s", sgt_cpu_model(), c->bf16 ? "bf16" : "fp32",
             c->threads, c->threads == 1 ? "" : "s");
    c->base.peak_flops = 2.0 * (double)(n * n * n) / seconds;
    c->base.peak_name = c->peak_name;
}
