/* bias.h: the gradient of a bias, a sum over rows of float32 or bfloat16. A strip of columns is
 * summed in double in registers, because float would lose a few of its last bits over thousands of
 * rows. */
#include "kernels/kernels.h"
#include "kernels/cpu/simd.h"

/* Add the sums of a strip of columns over n rows to db. The strip has `vectors` vectors, all whole
 * but the last. With four vectors, each row of it fills whole cache lines. */
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
