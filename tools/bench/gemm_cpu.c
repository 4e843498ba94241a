/* gemm_cpu.c: measures the matrix products of training on a CPU, each repeated for a while. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/arena.h"
#include "loader/base/clock.h"
#include "kernels/kernels.h"
#include "tools/bench/bench.h"
#include "tools/bench/gemm.h"

#define SIDE 1536 /* size of the square product: larger than the caches, 7 GFLOP */
#define MOST 64   /* runs per product */
#define LEAST 3

static const sgt_cuda_gemm_shape square = {.m = SIDE, .n = SIDE, .k = SIDE};

typedef struct operands {
    sgt_arena memory;
    float *a, *b, *c, *bias;
} operands;

static size_t rounded(size_t floats) { return (floats + 15) / 16 * 16; }

static void spans(const sgt_cuda_gemm_shape *s, size_t floats[4])
{
    floats[0] = rounded(s->m * s->k);
    floats[1] = rounded(s->k * s->n);
    floats[2] = rounded(s->m * s->n);
    floats[3] = rounded(s->n);
}

/* Return a float whose upper and lower half are both x rounded down to bfloat16. */
static float twice_as_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits & 0xffff0000u) | bits >> 16;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Allocate memory for the largest operands of any product, and fill it with small numbers, so that
 * no product overflows. */
static int fill_operands(operands *o, const gemm_bench *b, sgt_error *err)
{
    size_t most[4], floats[4], all = 0;
    spans(&square, most);
    for (size_t i = 0; i < b->count; i++) {
        spans(&b->lines[i].shape, floats);
        for (int x = 0; x < 4; x++)
            if (floats[x] > most[x]) most[x] = floats[x];
    }
    for (int x = 0; x < 4; x++) all += most[x];
    int rc = sgt_arena_map(&o->memory, all * sizeof(float), 1, err);
    if (rc < 0) return rc;
    float *p = (float *)(void *)o->memory.base;
    uint32_t random = 1;
    for (size_t i = 0; i < all; i++) {
        random = random * 1664525u + 1013904223u;
        p[i] = (float)(random >> 8) * 0x1p-24f - 0.5f;
        if (b->type == SGT_BF16) p[i] = twice_as_bf16(p[i]);
    }
    o->a = p;
    o->b = o->a + most[0];
    o->c = o->b + most[1];
    o->bias = o->c + most[2];
    return SGT_OK;
}

static int time_one(double *ms, const operands *o, const gemm_bench *b,
                    const sgt_cuda_gemm_shape *s, sgt_error *err)
{
    double times[MOST], began = sgt_now();
    size_t n = 0;
    sgt_gemm *g;
    sgt_gemm_shape shape = {.m = s->m,
                            .n = s->n,
                            .k = s->k,
                            .trans_a = s->trans_a,
                            .trans_b = s->trans_b,
                            .lda = s->trans_a ? s->m : s->k,
                            .ldb = s->trans_b ? s->k : s->n,
                            .ldc = s->n,
                            .bias = s->epilogue == SGT_EPILOGUE_BIAS,
                            .accumulate = s->accumulate,
                            .bf16 = b->type == SGT_BF16};
    int rc = sgt_gemm_plan(&g, &shape, b->threads, err);
    if (rc < 0) return rc;
    sgt_gemm_run(g, o->a, o->b, o->bias, o->c);
    while (n < LEAST || (n < MOST && sgt_now() - began < b->seconds)) {
        double from = sgt_now();
        sgt_gemm_run(g, o->a, o->b, o->bias, o->c);
        times[n++] = sgt_now() - from;
    }
    sgt_gemm_free(g);
    *ms = 1e3 * bench_median(times, n);
    return SGT_OK;
}

static int time_lines(gemm_bench *b, const operands *o, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < b->count && rc == SGT_OK; i++) {
        gemm_line *l = &b->lines[i];
        if (sgt_stopped(b->stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
        if (l->shape.epilogue > SGT_EPILOGUE_BIAS)
            snprintf(l->why, sizeof l->why, "a kernel of its own here");
        else rc = time_one(&l->ms, o, b, &l->shape, err);
    }
    return rc;
}

static int time_square(double *flops, const operands *o, const gemm_bench *b, sgt_error *err)
{
    double ms;
    int rc = time_one(&ms, o, b, &square, err);
    if (rc == SGT_OK) *flops = gemm_flops(&square) / ms * 1e3;
    return rc;
}

int gemm_square_on_cpu(double *flops, int threads, int bf16, sgt_error *err)
{
    operands o = {0};
    gemm_bench b = {.threads = threads, .type = bf16 ? SGT_BF16 : SGT_F32, .seconds = 0.1};
    int rc = fill_operands(&o, &b, err);
    if (rc == SGT_OK) rc = time_square(flops, &o, &b, err);
    sgt_arena_unmap(&o.memory);
    return rc;
}

int gemm_on_cpu(gemm_bench *b, sgt_error *err)
{
    operands o = {0};
    int rc = fill_operands(&o, b, err);
    if (rc < 0) return rc;
    if ((rc = time_square(&b->peak_flops, &o, b, err)) == SGT_OK) {
        snprintf(b->device, sizeof b->device, "%d thread%s", b->threads,
                 b->threads == 1 ? "" : "s");
        snprintf(b->library, sizeof b->library, "%s", SGT_GEMM_LIBRARY);
        rc = time_lines(b, &o, err);
    }
    sgt_arena_unmap(&o.memory);
    return rc;
}
