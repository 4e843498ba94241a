/* harness.h: functions and types for the test cases of check-kernels.
 *
 *     static void against_ref(check *t)
 *     {
 *         const float *x = check_random(t, n, 1);                    // inputs: uniform in -1 ... 1
 *         float *want = check_output(t, n), *got = check_output(t, n); // outputs: NaN at first
 *         check_at(t, "n %zu", n);                                    // how a failure is described
 *         t->ref->gelu(want, x, n, SGT_GELU_TANH);
 *         t->k->gelu(got, x, n, SGT_GELU_TANH);
 *         check_close(t, "out", got, want, bound, n);
 *     }
 *
 * Every buffer lies between two guard pages that may not be accessed, and is released when the case
 * function returns. A case runs once for each placement of its buffers between the pages: flush
 * with the end, flush with the start, one float in. Every run has the same random numbers. So
 * overruns on both sides crash, and results whose bits depend on alignment are found. */
#ifndef SGT_CHECK_HARNESS_H
#define SGT_CHECK_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Unit roundoff of float32: the error of one operation is at most UNIT times its result. Comments
 * of the cases write u for UNIT, and |terms| for the sum of the absolute values of a sum's terms. A
 * bound limits the difference between the tested kernel and ref or the definition, so it includes
 * the errors of both. Bounds are small multiples of u. They leave out squares of u. */
#define UNIT 0x1p-24

typedef struct check check;

typedef struct kernel_case {
    const char *name; /* name of the kernel's member in sgt_kernels */
    /* test ref against known results; NULL: no column, because another test does so */
    void (*definition)(check *t);
    void (*against_ref)(check *t); /* compare t->k with t->ref at many sizes; NULL: no column */
    void (*bench)(check *t);       /* NULL: there is no benchmark */
    /* Not NULL: the case tests something that is not in the table sgt_kernels. Its results have
     * only one column beside ref, with this name, for example "amx". If it is the name of a level
     * below the CPU's own, sgt_cpu() returns that level while the case runs. */
    const char *library;
} kernel_case;

/* Allocator that check_bytes uses if a GPU reads the buffers. It has no guard pages. Instead,
 * CHECK_GUARD bytes before and after each buffer, and the bytes that rounding up adds, are filled
 * with a pattern. The pattern is checked at the end. This finds writes beyond a buffer, but not
 * reads. If `exact` is set, there are no guard bytes, so that a memory checker finds an access to
 * the first byte beyond the buffer. */
typedef struct check_memory {
    void *(*allocate)(size_t size); /* 256-byte aligned; NULL: none left */
    void (*release)(void *p);
    int exact;
} check_memory;
#define CHECK_GUARD 4096

struct check {
    const sgt_kernels *k, *ref; /* the table under test, and the reference */
    const kernel_case *which;
    const char *level;
    uint64_t seed, counter; /* seed of the random numbers; count of numbers drawn so far */
    int placement, failures, skipped;
    /* allocator for check_bytes; NULL: memory between guard pages, as for all other buffers */
    const check_memory *device;
    int turn;         /* index of the run in this placement, from 0 */
    int same_buffers; /* 1: all runs must leave the same bits in the buffers of check_bytes */
    /* at: description of the current test, set by check_at; why: reason why the case was skipped */
    char at[160], why[200];
    struct check_buffer *buffers;
    /* hashes of the outputs in the first placement, in the order of the calls of check_same_bits */
    uint64_t *hashes;
    size_t hash_count, hash_next;
    double best; /* time of the running benchmark's fastest call, in seconds */
    double started, began;
    unsigned rounds;
};

/* ---- buffers, which the harness releases ---- */
float *check_output(check *t, size_t n); /* n floats, NaN */
/* n floats, uniform in -scale ... scale, never 0 */
float *check_random(check *t, size_t n, float scale);
float *check_copy(check *t, const float *x, size_t n);
int32_t *check_ids(check *t, size_t n, int32_t below); /* n ids in 0 ... below - 1 */
/* n floats, NaN, with the alignment that kernels.h requires */
float *check_scratch(check *t, size_t n);
double *check_doubles(check *t, size_t n); /* n zeros: for bounds; not guarded */
/* `size` bytes 0xff, 16-byte aligned; in device memory if t->device is set */
void *check_bytes(check *t, size_t size);
/* Round the floats x to bfloat16 values, in place. Return the same values as 16-bit numbers. */
const void *check_as_bf16(check *t, float *x, size_t n);
uint64_t check_number(check *t, uint64_t below);

/* ---- checks: each call counts at most one failure and prints where the failure is ---- */
void check_at(check *t, const char *fmt, ...) SGT_PRINTF(2, 3);
void check_fail(check *t, const char *fmt, ...) SGT_PRINTF(2, 3);
void check_skip(check *t, const char *why);

/* Check that |got - want| <= bound for every element. If ref did not write an element of `want`,
 * which is then still check_output's NaN, the element of `got` must not have been written
 * either. */
void check_close(check *t, const char *name, const float *got, const float *want,
                 const double *bound, size_t n);
/* Check that got and want have the same bits. Unwritten elements are treated as in check_close. */
void check_equal(check *t, const char *name, const float *got, const float *want, size_t n);
void check_near(check *t, const char *name, double got, double want, double bound);
/* Check that this output has the same bits in every placement and every run. */
void check_same_bits(check *t, const char *name, const float *got, size_t n);

/* ---- benchmarks: for (bench_start(t); bench_next(t);) call; bench_report(t, "64 x 768", bytes,
 * flops); ---- */
void bench_start(check *t);
int bench_next(check *t);
void bench_report(check *t, const char *shape, double bytes, double flops);

/* ---- the cases; a zeroed element ends each array ---- */
extern const kernel_case cases_adamw[], cases_amx[], cases_attention[], cases_bias[],
    cases_cross_entropy[], cases_decode[], cases_dropout[], cases_embed[], cases_gelu[],
    cases_gemm[], cases_head[], cases_layernorm[], cases_muon[], cases_normals[], cases_round[],
    cases_sgd[], cases_vector[];

#ifdef __cplusplus
}
#endif

#endif
