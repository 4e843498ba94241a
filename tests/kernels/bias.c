/* bias.c: tests gradients of biases, which are sums over rows, with gaps between the rows. */
#include "tests/kernels/harness.h"

#include <float.h>
#include <math.h>

static const size_t rows[] = {0, 1, 2, 13, 600},
                    widths[] = {1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 63, 64, 65, 133};

/* The kernel and ref both sum in double and round once. So the bound is n roundings of double and
 * two roundings of float. */
static void all_shapes(check *t, int bf16)
{
    for (size_t a = 0; a < sizeof rows / sizeof *rows; a++)
        for (size_t b = 0; b < sizeof widths / sizeof *widths; b++) {
            size_t n = rows[a], C = widths[b], ld = C + (check_number(t, 2) ? 3 : 0);
            size_t size = n ? (n - 1) * ld + C : 0;
            float *dout = check_random(t, size, 1);
            const void *in = bf16 ? check_as_bf16(t, dout, size) : dout;
            float *want = check_random(t, C, 1), *got = check_copy(t, want, C);
            double *bound = check_doubles(t, C);
            check_at(t, "n %zu, C %zu, ld %zu", n, C, ld);
            t->ref->bias_backward(want, in, n, C, ld, bf16);
            t->k->bias_backward(got, in, n, C, ld, bf16);
            for (size_t c = 0; c < C; c++)
                bound[c] = 2 * UNIT * fabs(want[c]) + (double)(n * n) * DBL_EPSILON;
            check_close(t, "db", got, want, bound, C);
            check_same_bits(t, "db", got, C);
        }
}

static void against_ref(check *t) { all_shapes(t, 0); }
static void bf16_against_ref(check *t) { all_shapes(t, 1); }

static void definition(check *t)
{
    float *db = check_random(t, 2, 1);
    db[0] = 100, db[1] = 200;
    check_at(t, "3 rows of 2, ld 3");
    t->ref->bias_backward(db, (const float[]){1, 2, 99, 3, 4, 99, 5, 6}, 3, 2, 3, 0);
    check_equal(t, "db", db, (const float[]){109, 212}, 2);
    /* 1, 2, 3, -0.5 as bfloat16 */
    const uint16_t half[] = {0x3f80, 0x4000, 0x7fc0, 0x4040, 0xbf00};
    check_at(t, "2 rows of 2, ld 3, bf16");
    t->ref->bias_backward(db, half, 2, 2, 3, 1);
    check_equal(t, "db", db, (const float[]){113, 213.5f}, 2);
}

const kernel_case cases_bias[] = {{"bias_backward", definition, against_ref, NULL, NULL},
                                  {"bias_backward_bf16", definition, bf16_against_ref, NULL, NULL},
                                  {0}};
