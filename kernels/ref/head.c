/* head.c: the head (the product with wte) and its loss, by definition, one row of logits at a
 * time. */
#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"

static double logit(const float *x, const float *w, size_t C)
{
    double sum = 0;
    for (size_t c = 0; c < C; c++) sum += (double)x[c] * w[c];
    return sum;
}

static float row(size_t V, size_t C, const float *x, const float *w, int32_t target, double scale,
                 double *dx, double *dw)
{
    double max = -INFINITY, total = 0;
    if (target < 0) return 0;
    for (size_t j = 0; j < V; j++) max = fmax(max, logit(x, w + j * C, C));
    for (size_t j = 0; j < V; j++) total += exp(logit(x, w + j * C, C) - max);
    for (size_t j = 0; j < V; j++) {
        double d = scale * (exp(logit(x, w + j * C, C) - max) / total - (j == (size_t)target));
        for (size_t c = 0; c < C; c++) {
            dx[c] += d * w[j * C + c];
            dw[j * C + c] += d * x[c];
        }
    }
    return (float)(max + log(total) - logit(x, w + (size_t)target * C, C));
}

void sgt_head_ref(size_t n, size_t V, size_t C, const float *x, const float *w,
                  const int32_t *targets, double scale, float *loss, double *dx, double *dw)
{
    memset(dx, 0, n * C * sizeof *dx);
    memset(dw, 0, V * C * sizeof *dw);
    for (size_t i = 0; i < n; i++)
        loss[i] = row(V, C, x + i * C, w, targets[i], scale, dx + i * C, dw);
}
