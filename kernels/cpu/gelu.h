/* gelu.h: GELU and its derivative, W numbers at a time. Both forms (tanh and erf) are x*Phi(x).
 * Errors are a few roundings of x. */
#include "kernels/kernels.h"
#include "kernels/cpu/simd.h"

/* Return exp(-2u) for GELU's 0.5 (1 + tanh u) = 1 / (1 + exp(-2u)). The right side cancels for
 * neither sign of x. */
SGT_INLINE vf exp_minus_2u(vf x)
{
    /* -2 sqrt(2/pi)(x + 0.044715 x^3) */
    const vf a = vset(-2 * 0.797884561f), b = vset(-2 * 0.797884561f * 0.044715f);
    return vexp(x * vfma(x * x, b, a));
}

SGT_INLINE vf gelu_tanh(vf x) { return x / (vset(1) + exp_minus_2u(x)); }

SGT_INLINE vf gelu_tanh_slope(vf x)
{
    const vf a = vset(2 * 0.797884561f), b = vset(6 * 0.797884561f * 0.044715f); /* d(2u)/dx */
    /* the slope is 0 or 1 long before +-100; clamping keeps the products below from overflowing */
    x = vmin(vset(100), vmax(vset(-100), x));
    vf e = vmin(vset(1e30f), exp_minus_2u(x));
    vf s = vset(1) / (vset(1) + e);
    return vfma(x * s, (e * s) * vfma(x * x, b, a), s); /* s + x s (1 - s) 2u' */
}

/* Return Phi(x) of the normal distribution, and phi = exp(-x^2/2)/sqrt(2 pi). For t = |x|, Phi(-t)
 * = exp(-t^2/2) R(t), where R falls slowly from 1/2. A polynomial of degree 9 in (t - 3)/(t + 3)
 * (Chebyshev fit) gives R with a relative error of 1.6e-8 for t up to 13.5, past which exp is 0.
 * Phi(t) = 1 - Phi(-t) loses nothing: near 0, Phi(-t) is near 1/2. */
SGT_INLINE vf normal(vf x, vf *phi)
{
    vf t = vmin(vset(13.5f), vabs(x));
    vf e = vexp(t * t * vset(-0.5f));
    vf y = (t - vset(3)) / (t + vset(3));
    vf r = vset(5.40025878e-5f);
    r = vfma(r, y, vset(1.16098912e-4f));
    r = vfma(r, y, vset(-3.39449645e-4f));
    r = vfma(r, y, vset(-9.84132279e-4f));
    r = vfma(r, y, vset(2.90439854e-3f));
    r = vfma(r, y, vset(6.13213881e-3f));
    r = vfma(r, y, vset(-4.62132459e-2f));
    r = vfma(r, y, vset(0.123225028f));
    r = vfma(r, y, vset(-0.206402622f));
    r = vfma(r, y, vset(0.121513948f));
    vf tail = e * r;
    *phi = e * vset(0.398942280f);
    return vpick_less(x, vset(0), tail, vset(1) - tail);
}

SGT_INLINE vf gelu_erf(vf x)
{
    vf phi;
    return x * normal(x, &phi);
}

SGT_INLINE vf gelu_erf_slope(vf x)
{
    vf phi, cumulative = normal(x, &phi);
    return vfma(x, phi, cumulative);
}

static void gelu(float *out, const float *x, size_t n, sgt_gelu_kind kind)
{
    if (kind == SGT_GELU_TANH)
        for (size_t i = 0; i < n; i += W)
            vstore_upto(out + i, gelu_tanh(vload_upto(x + i, n - i)), n - i);
    else
        for (size_t i = 0; i < n; i += W)
            vstore_upto(out + i, gelu_erf(vload_upto(x + i, n - i)), n - i);
}

static void gelu_backward(float *dx, const float *dout, const float *x, size_t n,
                          sgt_gelu_kind kind)
{
    for (size_t i = 0; i < n; i += W) {
        vf v = vload_upto(x + i, n - i), d = vload_upto(dout + i, n - i);
        vstore_upto(dx + i, d * (kind == SGT_GELU_TANH ? gelu_tanh_slope(v) : gelu_erf_slope(v)),
                    n - i);
    }
}
