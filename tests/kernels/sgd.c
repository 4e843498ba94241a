/* sgd.c: tests one SGD update of parameters and momentum. */
#include "tests/kernels/harness.h"

#include <math.h>

static const size_t sizes[] = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 133, 1021};

/* Error bounds. g' is the scaled gradient.
 *   m: 4u |terms|; u for g', and 2u for product and sum
 *   change of p: 8u of its terms; momentum times the error of m, u for g', and two more roundings
 *   p: the products with the learning rate and the decay, and the last rounding here and in ref */
static void bounds(double *p, double *m, const float *const old[2], const float *g, size_t n,
                   const sgt_sgd *o)
{
    for (size_t i = 0; i < n; i++) {
        double grad = fabs((double)g[i] * o->grad_scale),
               first = fabs(o->momentum * old[1][i]) + grad;
        m[i] = 4 * UNIT * first;
        double change = grad + o->momentum * first + first, decay = o->decay * fabs(old[0][i]);
        p[i] = o->lr * 8 * UNIT * (change + decay) + 2 * UNIT * fabs(old[0][i]);
    }
}

static void update(check *t, size_t n, const sgt_sgd *o)
{
    const float *g = check_random(t, n, 3);
    float *want[2], *got[2], *old[2];
    double *bound[2];
    for (int i = 0; i < 2; i++) {
        old[i] = check_random(t, n, 1);
        want[i] = check_copy(t, old[i], n), got[i] = check_copy(t, old[i], n),
        bound[i] = check_doubles(t, n);
    }
    check_at(t, "n %zu, momentum %g, decay %g%s", n, (double)o->momentum, (double)o->decay,
             o->nesterov ? ", Nesterov" : "");
    t->ref->sgd(want[0], want[1], g, n, o);
    t->k->sgd(got[0], got[1], g, n, o);
    bounds(bound[0], bound[1], (const float *const *)old, g, n, o);
    check_close(t, "p", got[0], want[0], bound[0], n);
    check_close(t, "m", got[1], want[1], bound[1], n);
    check_same_bits(t, "p", got[0], n);
}

static void against_ref(check *t)
{
    const sgt_sgd settings[] = {
        {.lr = 1e-2f, .momentum = 0.9f, .decay = 0.1f, .grad_scale = 0.37f},
        {.lr = 1e-2f, .momentum = 0.9f, .decay = 0.1f, .grad_scale = 1, .nesterov = 1},
        {.lr = 0.5f, .momentum = 0, .decay = 0, .grad_scale = 1e-3f},
    };
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++)
        for (size_t a = 0; a < sizeof sizes / sizeof *sizes; a++) update(t, sizes[a], &settings[s]);
}

/* Known results: all numbers are sums of powers of two, so every result must be exact. */
static void definition(check *t)
{
    float p = 1, m = 4;
    const float g = 8;
    const sgt_sgd plain = {.lr = 0.125f, .momentum = 0.5f, .decay = 0.5f, .grad_scale = 2};
    check_at(t, "one update");
    t->ref->sgd(&p, &m, &g, 1, &plain);
    check_near(t, "m", m, 18, 0);
    check_near(t, "p", p, 1 - 0.125 * (18 + 0.5), 0);
    sgt_sgd nesterov = plain;
    nesterov.nesterov = 1;
    p = 1, m = 4;
    t->ref->sgd(&p, &m, &g, 1, &nesterov);
    check_near(t, "m", m, 18, 0);
    check_near(t, "p with Nesterov's", p, 1 - 0.125 * (16 + 9 + 0.5), 0);
}

const kernel_case cases_sgd[] = {{"sgd", definition, against_ref, NULL, NULL}, {0}};
