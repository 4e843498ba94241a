/* embed.c: tests embeddings and their gradients. Each element is a sum in a fixed order, so every
 * level must give ref's bits. */
#include "tests/kernels/harness.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const size_t rows[] = {0, 1, 2, 7, 13},
                    widths[] = {1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 64, 133};
enum { VOCABULARY = 11, POSITIONS = 5 };

static void embed_against_ref(check *t)
{
    for (size_t a = 0; a < sizeof rows / sizeof *rows; a++)
        for (size_t b = 0; b < sizeof widths / sizeof *widths; b++) {
            size_t n = rows[a], C = widths[b], row0 = check_number(t, 9);
            const float *wte = check_random(t, VOCABULARY * C, 1),
                        *wpe = check_random(t, POSITIONS * C, 1);
            const int32_t *ids = check_ids(t, n, VOCABULARY);
            float *want = check_output(t, n * C), *got = check_output(t, n * C);
            check_at(t, "n %zu, C %zu, row0 %zu", n, C, row0);
            t->ref->embed(want, ids, wte, wpe, row0, n, POSITIONS, C);
            t->k->embed(got, ids, wte, wpe, row0, n, POSITIONS, C);
            check_equal(t, "out", got, want, n * C);
            if (!n) continue;
            memcpy(got, wte + (size_t)ids[0] * C, C * sizeof *got);
            t->k->embed(got, (const int32_t[]){0}, got, wpe, row0, 1, POSITIONS, C);
            check_equal(t, "out, where the row lay", got, want, C);
        }
}

static void backward_against_ref(check *t)
{
    for (size_t a = 0; a < sizeof rows / sizeof *rows; a++)
        for (size_t b = 0; b < sizeof widths / sizeof *widths; b++) {
            size_t n = rows[a], C = widths[b], c0 = check_number(t, C),
                   c1 = c0 + check_number(t, C - c0 + 1);
            if (check_number(t, 2)) c0 = 0, c1 = C;
            const int32_t *ids = check_ids(t, n, VOCABULARY);
            const float *dout = check_random(t, n * C, 1);
            float *want_te = check_random(t, VOCABULARY * C, 1),
                  *got_te = check_copy(t, want_te, VOCABULARY * C);
            float *want_pe = check_random(t, POSITIONS * C, 1),
                  *got_pe = check_copy(t, want_pe, POSITIONS * C);
            check_at(t, "n %zu, C %zu, columns %zu to %zu", n, C, c0, c1);
            double want =
                t->ref->embed_backward(want_te, want_pe, ids, dout, n, POSITIONS, C, c0, c1);
            double got = t->k->embed_backward(got_te, got_pe, ids, dout, n, POSITIONS, C, c0, c1);
            /* bound of a sum of n*C terms, in which the numbers are below n + 1 */
            if (!(fabs(got - want) <= (double)(n * C * n) * 8 * (double)(n + 1) * DBL_EPSILON))
                check_fail(t, "squares grow by %.17g, not %.17g", got, want);
            check_equal(t, "dwte", got_te, want_te, VOCABULARY * C);
            check_equal(t, "dwpe", got_pe, want_pe, POSITIONS * C);
        }
}

static void embed_definition(check *t)
{
    const float wte[] = {1, 2, 3, 4, 5, 6}, wpe[] = {10, 20, 30, 40};
    const int32_t ids[] = {2, 0, 2};
    float *out = check_output(t, 6);
    check_at(t, "3 rows of 2 from position 3 of 2");
    t->ref->embed(out, ids, wte, wpe, 3, 3, 2, 2);
    /* rows 2, 0, 2 of wte, plus rows 3 % 2 = 1, 0, 1 of wpe */
    const float expect[] = {35, 46, 11, 22, 35, 46};
    check_equal(t, "out", out, expect, 6);
}

static void backward_definition(check *t)
{
    const int32_t ids[] = {2, 0, 2};
    const float dout[] = {1, 2, 3, 4, 5, 6};
    float *te = check_random(t, 6, 1), *pe = check_random(t, 4, 1);
    memset(te, 0, 6 * sizeof *te);
    memset(pe, 0, 4 * sizeof *pe);
    check_at(t, "3 rows of 2");
    double grown = t->ref->embed_backward(te, pe, ids, dout, 3, 2, 2, 0, 2);
    if (grown != 125) check_fail(t, "squares grow by %g, not 9 + 16 + 36 + 64", grown);
    check_equal(t, "dwte", te, (const float[]){3, 4, 0, 0, 6, 8}, 6); /* id 2 twice, id 1 never */
    /* rows 0 and 2 have position 0 */
    check_equal(t, "dwpe", pe, (const float[]){6, 8, 3, 4}, 4);
}

const kernel_case cases_embed[] = {
    {"embed", embed_definition, embed_against_ref, NULL, NULL},
    {"embed_backward", backward_definition, backward_against_ref, NULL, NULL},
    {0},
};
