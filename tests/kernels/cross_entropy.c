/* cross_entropy.c: tests the cross-entropy loss of a softmax, and its gradient. */
#include "tests/kernels/bounds.h"

static const size_t rows[] = {0, 1, 3}, widths[] = {1,  2,  3,  4,  5,  7,    8,    9,    15,
                                                    16, 17, 31, 33, 47, 1023, 1024, 1025, 2053};

static void row_at(check *t, size_t n, size_t V, float scale, float spread)
{
    size_t ld = V + check_number(t, 3) * 5;
    float *want = check_random(t, n * ld, spread), *got = check_copy(t, want, n * ld);
    float *want_loss = check_output(t, n), *got_loss = check_output(t, n);
    int32_t *targets = check_ids(t, n, (int32_t)V);
    double *bound = check_doubles(t, n * ld), *loss_bound = check_doubles(t, n);
    if (n > 1) targets[1] = -100;
    for (size_t i = 0; i < n; i++)
        cross_entropy_bounds(bound + i * ld, loss_bound + i, want + i * ld, targets[i], V, scale,
                             0);
    check_at(t, "n %zu, V %zu, ld %zu, scale %g, logits up to %g", n, V, ld, (double)scale,
             (double)spread);
    t->ref->cross_entropy(want, want_loss, targets, n, V, ld, scale);
    t->k->cross_entropy(got, got_loss, targets, n, V, ld, scale);
    check_close(t, "loss", got_loss, want_loss, loss_bound, n);
    check_same_bits(t, "loss", got_loss, n);
    if (scale == 0) check_equal(t, "logits, loss only", got, want, n * ld);
    else check_close(t, "dlogits", got, want, bound, n * ld);
    check_same_bits(t, "dlogits", got, n * ld);
}

/* Test that a NaN or an infinity among the logits reaches the loss, where training notices it. */
static void poison(check *t, float value)
{
    size_t V = 133;
    for (size_t at = 0; at < V; at += 11) {
        float *logits = check_random(t, V, 1), *loss = check_output(t, 1);
        logits[at] = value;
        check_at(t, "logit %zu of %zu is %g", at, V, (double)value);
        t->k->cross_entropy(logits, loss, (const int32_t[]){5}, 1, V, V, 0);
        if (!isnan(*loss)) check_fail(t, "loss is %g, not NaN", (double)*loss);
    }
}

static void against_ref(check *t)
{
    for (size_t a = 0; a < sizeof rows / sizeof *rows; a++)
        for (size_t b = 0; b < sizeof widths / sizeof *widths; b++) {
            row_at(t, rows[a], widths[b], 0.01f, 1);
            row_at(t, rows[a], widths[b], 0, 5);
            row_at(t, rows[a], widths[b], 1, 60); /* one probability is near 1, most are near 0 */
        }
    row_at(t, 2, 50257, 1.0f / 4096, 3);
    poison(t, NAN);
    poison(t, INFINITY);
}

/* Known result: the logits 0 and log 3 have the probabilities 1/4 and 3/4. The second row is
 * ignored, and the third column is padding. */
static void definition(check *t)
{
    float logits[] = {0, 1.09861229f, 9, 1, 2, 9}, loss[2];
    check_at(t, "two logits");
    t->ref->cross_entropy(logits, loss, (const int32_t[]){1, -1}, 2, 2, 3, 2);
    check_near(t, "loss", loss[0], -log(.75), 4 * UNIT);
    check_near(t, "dlogits[0]", logits[0], .5, 4 * UNIT);
    check_near(t, "dlogits[1]", logits[1], -.5, 4 * UNIT);
    check_near(t, "loss of an ignored target", loss[1], 0, 0);
    check_equal(t, "the rest", logits + 2, (const float[]){0, 0, 0, 0}, 4);
}

const kernel_case cases_cross_entropy[] = {{"cross_entropy", definition, against_ref, NULL, NULL},
                                           {0}};
