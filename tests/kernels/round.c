/* round.c: tests rounding of floats to 16 bits. */
#include <math.h>
#include <string.h>

#include "tests/kernels/harness.h"

static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 47, 65, 133, 1021};
static const sgt_rounding formats[] = {SGT_FORMAT_BF16, SGT_FORMAT_FP16};

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Draw arbitrary bits, and often bits near the exponents and last places at which rounding matters.
 * NaNs are tested separately. */
static float draw(check *t)
{
    static const uint32_t near[] = {0x00000000, 0x00008000, 0x00800000, 0x33000000,
                                    0x33800000, 0x38800000, 0x477fe000, 0x477ff000,
                                    0x47800000, 0x7f7f8000, 0x7f7fffff, 0x7f800000};
    for (;;) {
        uint32_t bits = (uint32_t)check_number(t, UINT64_C(1) << 32);
        if (bits & 1) bits = (near[check_number(t, 12)] & 0xffff0000) | (bits & 0x8001ffff);
        if (bits & 2) bits &= 0xffffe000 | (bits & 0x1000);
        if (isfinite(of_bits(bits)) || of_bits(bits) == INFINITY) return of_bits(bits);
    }
}

/* Rounding has only one correct result, so the bits must equal ref's. */
static void against_ref(check *t)
{
    for (size_t f = 0; f < 2; f++)
        for (size_t a = 0; a < sizeof sizes / sizeof *sizes; a++) {
            size_t n = sizes[a];
            float *x = check_random(t, n, 1), *want = check_output(t, n), *got = check_output(t, n);
            for (size_t i = 0; i < n; i++) x[i] = draw(t);
            check_at(t, "n %zu, %s", n, f ? "fp16" : "bf16");
            t->ref->round_to(want, x, n, formats[f]);
            t->k->round_to(got, x, n, formats[f]);
            check_equal(t, "out", got, want, n);
            if (n) x[0] = NAN;
            t->k->round_to(x, x, n, formats[f]);
            if (n && !isnan(x[0])) check_fail(t, "NaN became %g", (double)x[0]);
            check_equal(t, "x in place", x + (n > 0), want + (n > 0), n - (n > 0));
        }
}

static void bf16_against_ref(check *t)
{
    for (size_t a = 0; a < sizeof sizes / sizeof *sizes; a++) {
        size_t n = sizes[a];
        float *x = check_random(t, n, 1);
        uint16_t *want = check_bytes(t, n * sizeof *want), *got = check_bytes(t, n * sizeof *got);
        /* NaNs whose fraction bits are set only in the lower half; they must stay NaNs */
        for (size_t i = 0; i < n; i++) x[i] = i % 7 == 3 ? of_bits(0x7f800001) : draw(t);
        check_at(t, "n %zu", n);
        t->ref->to_bf16(want, x, n);
        t->k->to_bf16(got, x, n);
        for (size_t i = 0; i < n; i++)
            if (got[i] != want[i]) {
                check_fail(t, "%a is %04x, not %04x", (double)x[i], got[i], want[i]);
                return;
            }
    }
}

/* Known result: a bfloat16 number is the upper half of round_to's result. */
static void bf16_definition(check *t)
{
    const float x[] = {1, 0x1.03p0f, -0x1.010002p0f, 0x1.ffp127f, -0.0f, NAN};
    const uint16_t want[] = {0x3f80, 0x3f82, 0xbf81, 0x7f80, 0x8000};
    uint16_t out[6];
    t->ref->to_bf16(out, x, 6);
    for (size_t i = 0; i < 5; i++)
        if (out[i] != want[i]) check_fail(t, "%a is %04x, not %04x", (double)x[i], out[i], want[i]);
    if ((out[5] & 0x7fff) <= 0x7f80) check_fail(t, "NaN became %04x", out[5]);
}

static void definition(check *t)
{
    static const struct {
        float x, bf16, fp16;
    } known[] = {
        {1, 1, 1},
        {0x1.01p0f, 0x1p0f, 0x1.01p0f},        /* half a bf16 step above 1: ties to even, down */
        {0x1.03p0f, 0x1.04p0f, 0x1.03p0f},     /* 1.5 bf16 steps above 1: ties to even, up */
        {0x1.010002p0f, 0x1.02p0f, 0x1.01p0f}, /* more than half a bf16 step above 1: up */
        {0x1.002p0f, 1, 1},                    /* half an fp16 step above 1: ties to even, down */
        {-0x1.006p0f, -1, -0x1.008p0f},
        {65519.996f, 65536, 65504},
        {65520, 65536, INFINITY}, /* halfway to 65536, which is beyond fp16's range */
        {0x1.ffp127f, INFINITY, INFINITY},
        {0x1p-25f, 0x1p-25f, 0},               /* half of fp16's smallest subnormal: ties to even */
        {-0x1.8p-24f, -0x1.8p-24f, -0x1p-23f}, /* 1.5 times fp16's smallest subnormal */
        {0x1p-133f, 0x1p-133f, 0},             /* bf16's smallest subnormal */
        {0x1.8p-134f, 0x1p-133f, 0},
        {-0.0f, -0.0f, -0.0f},
        {-INFINITY, -INFINITY, -INFINITY},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        float out[2];
        check_at(t, "%a", (double)known[i].x);
        t->ref->round_to(&out[0], &known[i].x, 1, SGT_FORMAT_BF16);
        t->ref->round_to(&out[1], &known[i].x, 1, SGT_FORMAT_FP16);
        check_equal(t, "bf16", &out[0], &known[i].bf16, 1);
        check_equal(t, "fp16", &out[1], &known[i].fp16, 1);
    }
}

const kernel_case cases_round[] = {{"round_to", definition, against_ref, NULL, NULL},
                                   {"to_bf16", bf16_definition, bf16_against_ref, NULL, NULL},
                                   {0}};
