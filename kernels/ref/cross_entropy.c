/* cross_entropy.c: the loss of a softmax classifier, and its gradient, which replaces the
 * logits. */
#include <math.h>

#include "kernels/ref/ref.h"

static void row(float *logits, float *loss, int32_t target, size_t V, size_t ld, float scale)
{
    double max = -INFINITY, total = 0;
    for (size_t c = 0; c < V; c++)
        if (logits[c] > max) max = logits[c];
    for (size_t c = 0; c < V; c++) total += exp(logits[c] - max);
    *loss = target < 0 ? 0 : (float)(max + log(total) - logits[target]);
    if (scale == 0) return;
    for (size_t c = 0; c < V; c++) {
        double p = exp(logits[c] - max) / total;
        logits[c] = target < 0 ? 0 : (float)((p - (c == (size_t)target)) * scale);
    }
    for (size_t c = V; c < ld; c++) logits[c] = 0;
}

void sgt_ref_cross_entropy(float *logits, float *loss, const int32_t *targets, size_t n, size_t V,
                           size_t ld, float scale)
{
    for (size_t i = 0; i < n; i++) row(logits + i * ld, &loss[i], targets[i], V, ld, scale);
}
