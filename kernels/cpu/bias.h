/* bias.h: the gradient of a bias, the sum over rows of float32 or bfloat16. Sums run in double, in
 * registers, down a strip of columns: thousands of rows would otherwise cost a float a few of its
 * last bits. */
#include "kernels.h"
#include "simd.h"

/* `vectors` side by side, all whole but for the last: with four a row's visit touches whole cache
 * lines. */
SGT_INLINE void strip_sum(float *db, const void *dout, size_t first, size_t n, size_t ld,
                          int vectors, size_t width, int bf16)
{
    vd low[4], high[4];
    for (int v = 0; v < vectors; v++) {
        vf old = vload_upto(db + v * W, width - v * W);
        low[v] = vlow(old);
        high[v] = vhigh(old);
    }
    for (size_t i = 0; i < n; i++)
        for (int v = 0; v < vectors; v++) {
            vf d = vload_either(dout, first + i * ld + v * W, width - v * W, bf16);
            low[v] += vlow(d);
            high[v] += vhigh(d);
        }
    for (int v = 0; v < vectors; v++)
        vstore_upto(db + v * W, vjoin(low[v], high[v]), width - v * W);
}

SGT_INLINE void bias_sums(float *db, const void *dout, size_t n, size_t C, size_t ld, int bf16)
{
    size_t c = 0;
    for (; c + 4 * W <= C; c += 4 * W) strip_sum(db + c, dout, c, n, ld, 4, 4 * W, bf16);
    for (; c < C; c += W) strip_sum(db + c, dout, c, n, ld, 1, C - c, bf16);
}

static void bias_backward(float *db, const float *dout, size_t n, size_t C, size_t ld)
{
    bias_sums(db, dout, n, C, ld, 0);
}

static void bias_backward_bf16(float *db, const uint16_t *dout, size_t n, size_t C, size_t ld)
{
    bias_sums(db, dout, n, C, ld, 1);
}
