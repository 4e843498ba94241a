/* amx.c: tests AMX's instructions as the kernels use them: products of tiles must have the bits of
 * a definition in plain C. It also tests that Linux can refuse AMX. The kernels for AMX are tested
 * like all other kernels, in the columns "amx" of gemm.c, attention.c and head.c. */
#include "tests/kernels/amx.h"

#include <math.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "tests/kernels/trap/trap_amx.h"

/* The linker makes the kernels call __wrap_sgt_cpu_amx instead of sgt_cpu_amx (tests/rules.mk). */
int __real_sgt_cpu_amx(void);
int __wrap_sgt_cpu_amx(void);

static int in_tiles;

int __wrap_sgt_cpu_amx(void) { return in_tiles || __real_sgt_cpu_amx(); }

#if defined(__x86_64__)
static long held_before; /* unreleased tile configurations of earlier cases that crashed */

int amx_begin(check *t)
{
    if (!sgt_cpu_bf16())
        check_skip(t, "AMX's emulation needs AVX512-BF16, which this CPU does not have");
    else if (!__real_sgt_cpu_amx()) trap_amx();
    in_tiles = !t->skipped;
    held_before = in_tiles ? trap_amx_held() : 0;
    return in_tiles;
}

void amx_end(check *t)
{
    long held = in_tiles ? trap_amx_held() - held_before : 0;
    in_tiles = 0;
    if (held) check_fail(t, "tiles were configured and not released, %ld times", held);
}

/* ---- the product of tiles ---- */

enum { SIZE = 256, NUMBERS = 512, MOST_STEPS = 4 };

/* Kinds of operands. The products of TINY operands underflow, and those of LARGE operands
 * overflow. */
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

static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

static float wide(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return flushed(x);
}

/* Return x * y + sum, rounded once. Return 0 if that value, rounded to 24 bits with an unbounded
 * exponent, is below the smallest normal number. */
static float multiply_add(float x, float y, float sum)
{
    float scaled = (float)(((double)x * (double)y + (double)sum) * 0x1p64);
    return fabsf(scaled) < 0x1p-62f ? copysignf(0, scaled) : fmaf(x, y, sum);
}

/* Compute c (16, 16) += a (16, 32) b (32, 16). Stored row r of b has the elements of rows 2r and 2r
 * + 1, alternately. */
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

static void by_definition(float *c, const uint16_t *a, const uint16_t *b, int steps)
{
    for (int i = 0; i < steps; i++) define_step(c, a + i * NUMBERS, b + i * NUMBERS);
}

/* Compare chains of tile products with the definition, `rounds` times for each kind of operands. A
 * NaN may have other bits than the definition's. */
static void chains(check *t, int rounds)
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
            amx_chain(x, a, b, steps);
            by_definition(y, a, b, steps);
            check_at(t, "%s, %d steps", kinds[kind], steps);
            for (int i = 0; i < SIZE; i++)
                if (isnan(x[i]) && isnan(y[i])) x[i] = y[i];
            check_equal(t, "c", x, y, SIZE);
        }
}

/* Check that Linux refuses AMX on a CPU without it, and that the level is then AVX-512. */
static void refused(check *t)
{
    static const char want[] =
        "amx: Linux does not let this process use it (take a lower level, or auto)";
    sgt_error err = {.text = ""};
    if (!amx_begin(t) || __real_sgt_cpu_amx()) return;
    if (claimed_cpu_amx()) check_fail(t, "Linux does not refuse AMX");
    if (strcmp(claimed_cpu_name(), "avx512") != 0) check_fail(t, "%s", claimed_cpu_name());
    if (claimed_cpu_limit("amx", &err) != SGT_EUNSUPPORTED || strcmp(err.text, want) != 0)
        check_fail(t, "--cpu amx: %s", err.text);
}

static void against_definition(check *t)
{
    if (amx_begin(t)) chains(t, 200);
}
#else
int amx_begin(check *t)
{
    check_skip(t, "AMX is part of x86-64");
    return 0;
}
void amx_end(check *t) { (void)t; }
static void refused(check *t) { amx_begin(t); }
static void against_definition(check *t) { amx_begin(t); }
#endif

const kernel_case cases_amx[] = {{"amx", refused, against_definition, NULL, "amx"}, {0}};
