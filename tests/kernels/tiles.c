/* tiles.c: AMX's product of tiles, bit for bit: the twin (kernels/cpu/amx.h) against a definition
 * in plain C, and the instruction against the twin, in emulation if this CPU has no AMX. */
#include "tests/kernels/harness.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "tests/kernels/trap/trap_amx.h"
#include "tests/kernels/twin_amx.h"

enum { SIZE = 256, NUMBERS = 512, MOST_STEPS = 4 };

/* The numbers that are multiplied. TINY: products underflow; LARGE: they overflow. */
enum { ABOUT_ONE, ANY_BITS, TINY, LARGE, FINITE, KINDS };
static const char *const kinds[KINDS] = {"about 1", "any bits", "tiny", "large", "finite"};

/* Draw a bfloat16 number. */
static uint16_t number(check *t, int kind)
{
    uint16_t bits = (uint16_t)check_number(t, 65536), rest = bits & 0x807f;
    unsigned exponent;
    if (kind == ANY_BITS) return bits; /* infinities and NaN too */
    exponent = kind == ABOUT_ONE    ? 120 + (unsigned)check_number(t, 14)
               : kind == TINY       ? (unsigned)check_number(t, 70)
               : kind == LARGE      ? 186 + (unsigned)check_number(t, 69)
               : check_number(t, 3) ? 1 + (unsigned)check_number(t, 254)
                                    : 0;
    return (uint16_t)(rest | exponent << 7);
}

/* ---- the definition ---- */

static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

static float wide(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return flushed(x);
}

/* Return x * y + sum, rounded once; 0 if that is below the smallest normal number after rounding to
 * 24 bits with an unbounded exponent. */
static float multiply_add(float x, float y, float sum)
{
    float scaled = (float)(((double)x * (double)y + (double)sum) * 0x1p64);
    return fabsf(scaled) < 0x1p-62f ? copysignf(0, scaled) : fmaf(x, y, sum);
}

/* c (16, 16) += a (16, 32) b (32, 16). Row r of b as stored holds rows 2r and 2r + 1, in turn. */
static void define_step(float *c, const uint16_t *a, const uint16_t *b)
{
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            float even = 0, odd = 0, *sum = c + m * 16 + n;
            for (int k = 0; k < 32; k += 2) {
                const uint16_t *left = a + m * 32 + k, *right = b + k * 16 + 2 * n;
                even = multiply_add(wide(left[0]), wide(right[0]), even);
                odd = multiply_add(wide(left[1]), wide(right[1]), odd);
            }
            *sum = flushed(flushed(*sum) + flushed(even + odd));
        }
}

#if defined(__x86_64__)
static void by_definition(float *c, const uint16_t *a, const uint16_t *b, int steps)
{
    for (int i = 0; i < steps; i++) define_step(c, a + i * NUMBERS, b + i * NUMBERS);
}

/* ---- comparisons ---- */

typedef void chain(float *c, const uint16_t *a, const uint16_t *b, int steps);

/* Compare two chains with `rounds` random operands of each kind. NaN may differ in their bits. */
static void compare(check *t, chain *got, chain *want, int rounds)
{
    static uint16_t a[MOST_STEPS * NUMBERS], b[MOST_STEPS * NUMBERS];
    float x[SIZE], y[SIZE];
    for (int kind = 0; kind < KINDS; kind++)
        for (int round = 0; round < rounds; round++) {
            int steps = 1 + round % MOST_STEPS;
            for (int i = 0; i < steps * NUMBERS; i++)
                a[i] = number(t, kind), b[i] = number(t, kind);
            for (int i = 0; i < SIZE; i++) {
                uint32_t bits = (uint32_t)number(t, kind) << 16 | (uint32_t)check_number(t, 65536);
                memcpy(x + i, &bits, sizeof bits);
            }
            memcpy(y, x, sizeof y);
            got(x, a, b, steps);
            want(y, a, b, steps);
            check_at(t, "%s, %d steps", kinds[kind], steps);
            for (int i = 0; i < SIZE; i++)
                if (isnan(x[i]) && isnan(y[i])) x[i] = y[i];
            check_equal(t, "c", x, y, SIZE);
        }
}

static void twin_by_definition(check *t)
{
    if (twin_table()) compare(t, tiles_by_twin, by_definition, 40);
    else check_skip(t, "AMX's twin needs AVX512-BF16, which this CPU does not have");
}

int tiles_ready(check *t)
{
#if defined(SGT_AMX_TWIN)
    check_skip(t, "built with AMX's twin in place of its instructions");
#else
    if (!twin_table())
        check_skip(t, "AMX's emulation needs AVX512-BF16, which this CPU does not have");
    else if (!sgt_cpu_amx()) trap_amx();
#endif
    return !t->skipped;
}

static void instruction_by_twin(check *t)
{
    if (tiles_ready(t)) compare(t, tiles_by_instruction, tiles_by_twin, 500);
}
#else
static void twin_by_definition(check *t)
{
    (void)define_step, (void)number, (void)kinds;
    check_skip(t, "AMX is part of x86-64");
}
int tiles_ready(check *t)
{
    twin_by_definition(t);
    return 0;
}
static void instruction_by_twin(check *t) { twin_by_definition(t); }
#endif

static void no_bench(check *t) { (void)t; }

const kernel_case cases_tiles[] = {
    {"amx_tiles", twin_by_definition, instruction_by_twin, no_bench, "amx"}, {0}};
