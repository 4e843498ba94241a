/* muon.c: Muon's update of one matrix, by definition; kernels/muon.h has the formula. */
#include <math.h>
#include <string.h>

#include "kernels/muon.h"
#include "kernels/ref/ref.h"

/* The matrix with its smaller dimension first: number (i, j) of (n, k) is at i*down + j*across. */
typedef struct wide {
    size_t n, k, down, across;
} wide;

static void finish(double *x, size_t n, const sgt_muon_shape *s)
{
    for (size_t i = 0; s->rounding && i < n; i++) {
        float rounded = (float)x[i];
        sgt_ref_round(&rounded, &rounded, 1, s->format);
        x[i] = rounded;
    }
}

/* Compute x = A x + (B G + C G G) x with G = x x', for x (n, k). room: n*k + 2*n*n numbers. */
static void newton_schulz(double *x, const wide *w, const sgt_muon_shape *s, double *room)
{
    size_t n = w->n, k = w->k, down = w->down, across = w->across;
    double *y = room, *g = y + n * k, *b = g + n * n;
    memset(room, 0, (n * k + 2 * n * n) * sizeof *room);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            for (size_t l = 0; l < k; l++)
                g[i * n + j] += x[i * down + l * across] * x[j * down + l * across];
    finish(g, n * n, s);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double square = 0;
            for (size_t l = 0; l < n; l++) square += g[i * n + l] * g[l * n + j];
            b[i * n + j] = SGT_MUON_B * g[i * n + j] + SGT_MUON_C * square;
        }
    finish(b, n * n, s);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k; j++)
            for (size_t l = 0; l < n; l++)
                y[i * down + j * across] += b[i * n + l] * x[l * down + j * across];
    for (size_t i = 0; i < n * k; i++) x[i] = SGT_MUON_A * x[i] + y[i];
    finish(x, n * k, s);
}

void sgt_muon_ref(float *p, float *m, const float *g, const sgt_muon_shape *s,
                  const sgt_muon_update *o, double *room)
{
    const wide w = s->rows <= s->columns ? (wide){s->rows, s->columns, s->columns, 1}
                                         : (wide){s->columns, s->rows, 1, s->columns};
    size_t count = s->rows * s->columns;
    double *x = room, squares = 0;
    for (size_t i = 0; i < count; i++) {
        double grad = (double)g[i] * o->grad_scale;
        double m1 = SGT_MUON_MOMENTUM * m[i] + (1 - SGT_MUON_MOMENTUM) * grad;
        x[i] = (1 - SGT_MUON_MOMENTUM) * grad + SGT_MUON_MOMENTUM * m1;
        squares += x[i] * x[i];
        m[i] = (float)m1;
    }
    double norm = fmax(sqrt(squares), SGT_MUON_EPS);
    for (size_t i = 0; i < count; i++) x[i] /= norm;
    finish(x, count, s);
    for (int i = 0; i < SGT_MUON_STEPS; i++) newton_schulz(x, &w, s, room + count);
    double lr = o->lr, step = lr * .2 * sqrt((double)w.k);
    for (size_t i = 0; i < count; i++) p[i] = (float)(p[i] * (1 - lr * o->decay) - step * x[i]);
}
