/* bias.h: a bias's gradient, the sum over rows. Sums run in double, in registers, down a strip of columns: thousands of
 * rows would otherwise cost a float a few of its last bits. */
#include "kernels.h"
#include "simd.h"

SGT_INLINE void strip_sum(float *db, const float *dout, size_t n, size_t ld, size_t width)
{
    vd low = vdset(0), high = vdset(0);
    for (size_t i = 0; i < n; i++) {
        vf d = vload_upto(dout + i * ld, width);
        low += vlow(d);
        high += vhigh(d);
    }
    vf old = vload_upto(db, width);
    vstore_upto(db, vjoin(vlow(old) + low, vhigh(old) + high), width);
}

/* Four vectors side by side: a row's visit touches whole cache lines. */
SGT_INLINE void strip_sum4(float *db, const float *dout, size_t n, size_t ld)
{
    vd sum[8];
    for (int v = 0; v < 4; v++) {
        sum[2 * v] = vlow(vload(db + v * W));
        sum[2 * v + 1] = vhigh(vload(db + v * W));
    }
    for (size_t i = 0; i < n; i++)
        for (int v = 0; v < 4; v++) {
            vf d = vload(dout + i * ld + v * W);
            sum[2 * v] += vlow(d);
            sum[2 * v + 1] += vhigh(d);
        }
    for (int v = 0; v < 4; v++) vstore(db + v * W, vjoin(sum[2 * v], sum[2 * v + 1]));
}

static void bias_backward(float *db, const float *dout, size_t n, size_t C, size_t ld)
{
    size_t c = 0;
    for (; c + 4 * W <= C; c += 4 * W) strip_sum4(db + c, dout + c, n, ld);
    for (; c < C; c += W) strip_sum(db + c, dout + c, n, ld, C - c);
}
