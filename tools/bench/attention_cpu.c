/* attention_cpu.c: measures attention on a CPU. Threads share the heads of all rows. */
#include <math.h>
#include <stdio.h>

#include "loader/base/arena.h"
#include "loader/base/clock.h"
#include "kernels/kernels.h"
#include "tools/bench/attention.h"
#include "tools/bench/bench.h"
#include "tools/bench/gemm.h"

enum { LEAST = 3, MOST = 64 };
#define SECONDS 0.5 /* least time for each direction, in seconds */

typedef struct operands {
    const sgt_kernels *k;
    size_t B, T, H, D, C, scratch_floats;
    float scale;
    sgt_arena memory;
    /* shapes: (B, T, 3C), (B, T, C), (B, H, T); dqkv like qkv, dout like out */
    float *qkv, *out, *lse, *dqkv, *dout;
    float *scratch; /* (threads, scratch_floats) */
} operands;

static size_t rounded(size_t floats) { return (floats + 15) / 16 * 16; }

static int take_memory(operands *o, const attention_bench *b, sgt_error *err)
{
    size_t C = b->H * b->D, N = b->B * b->T, scratch = rounded(o->k->attention_scratch(b->T, b->D));
    size_t wide = rounded(N * 3 * C), narrow = rounded(N * C), lse = rounded(N * b->H);
    size_t all = 2 * wide + 2 * narrow + lse + (size_t)b->threads * scratch;
    int rc = sgt_arena_map(&o->memory, all * sizeof(float), 1, err);
    if (rc < 0) return rc;
    o->B = b->B, o->T = b->T, o->H = b->H, o->D = b->D, o->C = C;
    o->scratch_floats = scratch;
    o->scale = (float)(1 / sqrt((double)b->D));
    o->qkv = (float *)(void *)o->memory.base;
    o->dqkv = o->qkv + wide;
    o->out = o->dqkv + wide;
    o->dout = o->out + narrow;
    o->lse = o->dout + narrow;
    o->scratch = o->lse + lse;
    uint32_t random = 1;
    for (size_t i = 0; i < 2 * wide + 2 * narrow; i++) {
        random = random * 1664525u + 1013904223u;
        o->qkv[i] = (float)(random >> 8) * 0x1p-24f - 0.5f;
    }
    return SGT_OK;
}

/* Compute head i of the B*H heads. bench_run may pass an i past the last one; it is ignored. */
static int head_forward(void *ctx, int thread, uint64_t i, sgt_error *err)
{
    const operands *o = ctx;
    size_t row = i / o->H * o->T, column = i % o->H * o->D;
    const float *q = o->qkv + row * 3 * o->C + column;
    (void)err;
    if (i < o->B * o->H)
        o->k->attention(o->out + row * o->C + column, o->C, o->lse + i * o->T, q, q + o->C,
                        q + 2 * o->C, 3 * o->C, o->T, o->D, o->scale, NULL, NULL,
                        o->scratch + (size_t)thread * o->scratch_floats);
    return SGT_OK;
}

static int head_backward(void *ctx, int thread, uint64_t i, sgt_error *err)
{
    const operands *o = ctx;
    size_t row = i / o->H * o->T, column = i % o->H * o->D, at = row * o->C + column;
    const float *q = o->qkv + row * 3 * o->C + column;
    float *dq = o->dqkv + row * 3 * o->C + column;
    (void)err;
    if (i < o->B * o->H)
        o->k->attention_backward(dq, dq + o->C, dq + 2 * o->C, 3 * o->C, o->dout + at, o->out + at,
                                 o->C, o->lse + i * o->T, q, q + o->C, q + 2 * o->C, 3 * o->C, o->T,
                                 o->D, o->scale, NULL, NULL,
                                 o->scratch + (size_t)thread * o->scratch_floats);
    return SGT_OK;
}

static int time_heads(double *ms, operands *o, const attention_bench *b, bench_work *work,
                      sgt_error *err)
{
    double times[MOST], began = sgt_now(), seconds;
    size_t n = 0, heads = b->B * b->H, threads = (size_t)b->threads;
    bench_slice s = {
        .most = (heads + threads - 1) / threads, .seconds = 1e9, .threads = b->threads};
    uint64_t units;
    int rc = bench_run(&s, work, o, &units, &seconds, err); /* warm-up */
    while (rc == SGT_OK && (n < LEAST || (n < MOST && sgt_now() - began < SECONDS))) {
        if (sgt_stopped(b->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        rc = bench_run(&s, work, o, &units, &seconds, err);
        times[n++] = seconds * 1e3;
    }
    *ms = bench_median(times, n);
    return rc;
}

int attention_on_cpu(attention_bench *b, sgt_error *err)
{
    operands o = {.k = b->precision == SGT_PRECISION_BF16 ? sgt_kernels_bf16() : sgt_kernels_cpu()};
    attention_line *l = &b->lines[b->count++];
    *l = (attention_line){.way = "own"};
    int rc = take_memory(&o, b, err);
    if (rc < 0) return rc;
    snprintf(b->device, sizeof b->device, "%d thread%s", b->threads, b->threads == 1 ? "" : "s");
    snprintf(b->library, sizeof b->library, "%s", o.k->level);
    rc = time_heads(&l->forward_ms, &o, b, head_forward, err);
    if (rc == SGT_OK) rc = time_heads(&l->backward_ms, &o, b, head_backward, err);
    int bf16 = b->precision == SGT_PRECISION_BF16;
    if (rc == SGT_OK && gemm_square_on_cpu(&b->peak_flops, b->threads, bf16, NULL) < 0)
        b->peak_flops = 0;
    sgt_arena_unmap(&o.memory);
    return rc;
}
