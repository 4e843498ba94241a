/* gelu.c: the Gaussian error linear unit, Hendrycks & Gimpel 2016: x times the normal
 * distribution's Phi(x), either exact (erf) or in GPT-2's approximation (tanh). */
#include <math.h>

#include "kernels/ref/ref.h"

static const double SQRT_2_OVER_PI = 0.79788456080286535588;
static const double ONE_OVER_SQRT_2 = 0.70710678118654752440;
static const double ONE_OVER_SQRT_2_PI = 0.39894228040143267794;

static double gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)));
}

static double gelu_tanh_slope(double x)
{
    double t = tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x));
    double du = SQRT_2_OVER_PI * (1 + 3 * 0.044715 * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du;
}

static double gelu_erf(double x) { return 0.5 * x * erfc(-x * ONE_OVER_SQRT_2); }

static double gelu_erf_slope(double x)
{
    return 0.5 * erfc(-x * ONE_OVER_SQRT_2) + x * ONE_OVER_SQRT_2_PI * exp(-0.5 * x * x);
}

void sgt_ref_gelu(float *out, const float *x, size_t n, sgt_gelu_kind kind)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(kind == SGT_GELU_TANH ? gelu_tanh(x[i]) : gelu_erf(x[i]));
}

void sgt_ref_gelu_backward(float *dx, const float *dout, const float *x, size_t n,
                           sgt_gelu_kind kind)
{
    for (size_t i = 0; i < n; i++)
        dx[i] = (float)(dout[i] *
                        (kind == SGT_GELU_TANH ? gelu_tanh_slope(x[i]) : gelu_erf_slope(x[i])));
}
