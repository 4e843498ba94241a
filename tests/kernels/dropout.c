/* dropout.c: tests which numbers dropout keeps, and by which factor it multiplies these numbers. */
#include "kernels/dropout.h"

#include <math.h>

#include "tests/kernels/harness.h"

static const size_t sizes[] = {0,  1,  2,  3,  4,  5,  7,   8,   15,  16,
                               17, 31, 33, 63, 64, 65, 133, 257, 1021};

/* Dropout is one multiplication, so every level must give the same bits, for any number of the
 * first element. */
static void against_ref(check *t)
{
    static const float rates[] = {0, 0.1f, 0.5f, 0.999f};
    static const uint64_t firsts[] = {
        0, 1, 2, 3, 4, 1003, UINT64_C(4) << 32, (UINT64_C(4) << 32) - 6};
    for (size_t a = 0; a < sizeof sizes / sizeof *sizes; a++)
        for (size_t b = 0; b < sizeof firsts / sizeof *firsts; b++) {
            size_t n = sizes[a];
            sgt_dropout d = {check_number(t, UINT64_MAX), check_number(t, UINT64_MAX), firsts[b],
                             rates[(a + b) % 4]};
            const float *x = check_random(t, n, 1);
            float *want = check_output(t, n), *got = check_output(t, n),
                  *place = check_copy(t, x, n);
            check_at(t, "n %zu, first %llu, rate %g", n, (unsigned long long)d.first,
                     (double)d.rate);
            t->ref->dropout(want, x, n, &d);
            t->k->dropout(got, x, n, &d);
            check_equal(t, "out", got, want, n);
            t->k->dropout(place, place, n, &d);
            check_equal(t, "x in place", place, want, n);
        }
}

/* Test that an element is kept or dropped depending only on its own number, that the fraction of
 * dropped elements is the rate within five standard deviations, and that the choice is independent
 * of the choices for neighbouring seeds, steps, layers, sites and elements. */
static void definition(check *t)
{
    enum { N = 1 << 16 };
    static float ones[N], out[N], other[N];
    const float rate = 0.2f;
    sgt_dropout d = {.seed = 5, .draw = sgt_dropout_draw(7, 3, SGT_DROP_PROJ), .rate = rate};
    for (size_t i = 0; i < N; i++) ones[i] = 1;
    check_at(t, "rate 0.2");
    t->ref->dropout(out, ones, N, &d);
    size_t kept = 0;
    for (size_t i = 0; i < N; i++) {
        kept += out[i] != 0;
        if (out[i] != 0) check_near(t, "factor", out[i], 1 / (1 - (double)rate), 4 * UNIT);
    }
    check_near(t, "kept", (double)kept / N, 1 - (double)rate, 5 * sqrt(0.2 * 0.8 / N));
    sgt_dropout near[] = {d, d, d, d, d};
    near[0].seed++, near[1].first += 1, near[2].first += 4;
    near[3].draw = sgt_dropout_draw(8, 3, SGT_DROP_PROJ),
    near[4].draw = sgt_dropout_draw(7, 3, SGT_DROP_FCPROJ);
    for (size_t k = 0; k < sizeof near / sizeof *near; k++) {
        size_t same = 0;
        check_at(t, "neighbour %zu", k);
        t->ref->dropout(other, ones, N, &near[k]);
        for (size_t i = 0; i < N; i++) same += (out[i] != 0) == (other[i] != 0);
        /* both kept: .64; both dropped: .04 */
        check_near(t, "same", (double)same / N, 0.68, 5 * sqrt(0.68 * 0.32 / N));
    }
}

const kernel_case cases_dropout[] = {{"dropout", definition, against_ref, NULL, NULL}, {0}};
