/* vector.h: sums of float arrays, and sums of their squares in double. */
#include "kernels/kernels.h"
#include "kernels/cpu/simd.h"

static void add(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i += W)
        vstore_upto(x + i, vload_upto(x + i, n - i) + vload_upto(y + i, n - i), n - i);
}

typedef struct squares {
    vd low, high;
} squares;

SGT_INLINE void square(squares *s, vf v)
{
    s->low = vdfma(vlow(v), vlow(v), s->low);
    s->high = vdfma(vhigh(v), vhigh(v), s->high);
}

static double sum_squares(const float *x, size_t n)
{
    squares s = {vdset(0), vdset(0)};
    for (size_t i = 0; i < n; i += W) square(&s, vload_upto(x + i, n - i));
    return vdtotal(s.low + s.high);
}

static double add_squares(float *x, const float *y, size_t n)
{
    squares s = {vdset(0), vdset(0)};
    for (size_t i = 0; i < n; i += W) {
        vf v = vload_upto(x + i, n - i) + vload_upto(y + i, n - i);
        vstore_upto(x + i, v, n - i);
        square(&s, v);
    }
    return vdtotal(s.low + s.high);
}
