/* harness.h: what the cases of check-kernels are written with.
 *
 *     static void against_ref(check *t)
 *     {
 *         const float *x = check_random(t, n, 1);                     // inputs: uniform in -1 ... 1
 *         float *want = check_output(t, n), *got = check_output(t, n); // outputs: NaN until written
 *         check_at(t, "n %zu", n);                                    // how a failure is described
 *         t->ref->gelu(want, x, n, SGT_GELU_TANH);
 *         t->k->gelu(got, x, n, SGT_GELU_TANH);
 *         check_close(t, "out", got, want, bound, n);
 *     }
 *
 * Every buffer lies between two pages that may not be touched, and is released when the case
 * function returns. A case runs once for each placement in its pages (flush with the end, flush
 * with the start, one float in), with the same random numbers, so that overruns on both sides
 * crash, and so that bits which depend on alignment show. */
#ifndef SGT_CHECK_HARNESS_H
#define SGT_CHECK_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Unit roundoff: one operation in float is off by at most UNIT times its result. Bounds are small
 * multiples of sums of such. */
#define UNIT 0x1p-24

typedef struct check check;

typedef struct kernel_case {
    const char *name; /* the member of sgt_kernels */
    void (*definition)(
        check *
            t); /* what ref must satisfy by itself: known values, finite differences of the forward kernel */
    void (*against_ref)(check *t); /* t->k against t->ref over sizes */
    void (*bench)(check *t);
    /* Not a kernel of the table: the one other column it has, e.g. "onednn". If it is the name of a
     * level below the CPU's own, that is what sgt_cpu() says while the case runs. */
    const char *library;
} kernel_case;

/* Where buffers of check_bytes lie when a GPU reads them: memory without guard pages. CHECK_GUARD
 * bytes before and after each, and what rounding leaves, are filled and looked at in the end: an
 * overrun within them that writes is found, one that reads is not. `exact` leaves them out, so that
 * a memory checker sees the first byte too far. */
typedef struct check_memory {
    void *(*allocate)(size_t size); /* 256-byte aligned; NULL: none left */
    void (*release)(void *p);
    int exact;
} check_memory;
#define CHECK_GUARD 4096

struct check {
    const sgt_kernels *k, *ref; /* under test, and the definition */
    const kernel_case *which;
    const char *level;
    uint64_t seed, counter; /* of the random numbers */
    int placement, failures, skipped;
    const check_memory *device; /* NULL: check_bytes lies between guard pages, as the rest does */
    /* with device: 0 the first time; what buffers hold in the end is the same each time */
    int turn;
    char at[160], why[200]; /* what is being tried; why it was skipped */
    struct check_buffer *buffers;
    uint64_t *hashes; /* of the first placement's outputs, in order of check_same_bits */
    size_t hash_count, hash_next;
    double best; /* seconds, of the benchmark that runs */
    double started, began;
    unsigned rounds;
};

/* ---- buffers, released by the harness ---- */
float *check_output(check *t, size_t n); /* n floats, NaN */
/* n floats uniform in -scale ... scale, never 0 */
float *check_random(check *t, size_t n, float scale);
float *check_copy(check *t, const float *x, size_t n);
int32_t *check_ids(check *t, size_t n, int32_t below); /* n ids in 0 ... below - 1 */
/* n floats, NaN, aligned as kernels.h asks */
float *check_scratch(check *t, size_t n);
double *check_doubles(check *t, size_t n); /* n zeros: for bounds; not guarded */
/* size bytes 0xff, 16-byte aligned: for device memory */
void *check_bytes(check *t, size_t size);
uint64_t check_number(check *t, uint64_t below);

/* ---- verdicts; each counts at most one failure and says where ---- */
void check_at(check *t, const char *fmt, ...) SGT_PRINTF(2, 3);
void check_fail(check *t, const char *fmt, ...) SGT_PRINTF(2, 3);
void check_skip(check *t, const char *why);

/* |got - want| <= bound, for every element. Where want is NaN, ref left the output alone and so
 * must the other. */
void check_close(check *t, const char *name, const float *got, const float *want,
                 const double *bound, size_t n);
void check_equal(check *t, const char *name, const float *got, const float *want,
                 size_t n); /* the same bits, NaN as above */
void check_near(check *t, const char *name, double got, double want, double bound);
/* The same bits here as in every other placement and turn. */
void check_same_bits(check *t, const char *name, const float *got, size_t n);

/* df/dx by a five-point stencil; f is a sum of float results weighted and added in double. The step
 * is CHECK_STEP. */
#define CHECK_STEP 0x1p-5
double check_slope(float *x, double (*f)(void *ctx), void *ctx);
/* What such a slope can be off by: every one of f's n terms, of size up to `term`, is rounded to
 * float in each of the four evaluations, whose weights add up to 18/12; the stencil leaves h^4/30
 * of the fifth derivative, taken as up to 20 terms; and x + h is rounded, which moves the slope by
 * 2^-24 of 1 to 2^-5 of a step and a few times that. */
double check_slope_bound(size_t n, double term);

/* ---- benchmarks: for (bench_start(t); bench_next(t);) call; bench_report(t, "64 x 768", bytes,
 * flops); ---- */
void bench_start(check *t);
int bench_next(check *t);
void bench_report(check *t, const char *shape, double bytes, double flops);

/* ---- the cases, each array ended by a zeroed one ---- */
extern const kernel_case cases_adamw[], cases_attention[], cases_bias[], cases_cross_entropy[],
    cases_decode[], cases_dropout[], cases_embed[], cases_gelu[], cases_gemm[], cases_head[],
    cases_layernorm[], cases_normals[], cases_round[], cases_sgd[], cases_vector[];

#ifdef __cplusplus
}
#endif

#endif
