/* cross_entropy.h: softmax, loss and gradient of each row of logits. With GPT-2's vocabulary a row
 * fits in the second-level cache. */
#include "kernels/kernels.h"
#include "kernels/cpu/simd.h"

/* columns summed in float before the sum is added to a double */
enum { CROSS_ENTROPY_BLOCK = 1024 };

/* Return the sum of exp(x - max) over V columns. Write the terms to `out`, which may be x, unless
 * it is NULL. */
SGT_INLINE double row_exp(float *out, const float *x, size_t V, float max)
{
    double total = 0;
    for (size_t block = 0; block < V; block += CROSS_ENTROPY_BLOCK) {
        size_t end = V - block < CROSS_ENTROPY_BLOCK ? V : block + CROSS_ENTROPY_BLOCK;
        vf sum = vset(0);
        for (size_t c = block; c < end; c += W) {
            vf e = vkeep(vexp(vload_upto(x + c, end - c) - vset(max)), end - c);
            if (out) vstore_upto(out + c, e, end - c);
            sum += e;
        }
        total += vtotal(sum);
    }
    return total;
}

SGT_INLINE void row_scale(float *x, size_t V, float factor)
{
    for (size_t c = 0; c < V; c += W)
        vstore_upto(x + c, vload_upto(x + c, V - c) * vset(factor), V - c);
}

static void cross_entropy(float *logits, float *loss, const int32_t *targets, size_t n, size_t V,
                          size_t ld, float scale)
{
    for (size_t i = 0; i < n; i++, logits += ld) {
        int ignored = targets[i] < 0, with_gradient = scale != 0;
        if (ignored) {
            loss[i] = 0;
            if (with_gradient) memset(logits, 0, ld * sizeof *logits);
            continue;
        }
        size_t target = (size_t)targets[i];
        float max = vlargest_of(logits, V), at_target = logits[target];
        double total = row_exp(with_gradient ? logits : NULL, logits, V, max);
        loss[i] = (float)(max + log(total) - at_target);
        if (!with_gradient) continue;
        row_scale(logits, V, (float)(scale / total));
        logits[target] -= scale;
        memset(logits + V, 0, (ld - V) * sizeof *logits);
    }
}
