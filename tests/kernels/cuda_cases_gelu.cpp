/* cuda_cases_gelu.cpp: GELU and its gradient on the device. */
#include "tests/kernels/cuda_types.h"

static const size_t sizes[] = {0, 1, 3, 7, 8, 9, 133, 2048, 2055};
static const float special[] = {0,  -0.0f, 1e-6f, 5.5f,  -5.5f, 13.4f, -13.4f,
                                40, -40,   1e4f,  -1e4f, 6e4f,  -6e4f};

/* Draw arguments: most where GELU is curved, some far out. */
template <class T> static T *arguments(check *t, size_t n)
{
    T *x = cuda_random<T>(t, n, 1);
    for (size_t i = 0; i < n; i++) {
        uint64_t kind = check_number(t, 8);
        float by = kind < 6 ? 4 : 15,
              value = special[check_number(t, sizeof special / sizeof *special)];
        x[i] = dev::from_float<T>(kind == 0 ? value : by * dev::to_float(x[i]));
    }
    return x;
}

/* Bounds, relative to |x|.
 *   tanh, 6u: x s with s = 1/(1 + e) and e = exp2(a). a is off by 5u |a|, exp2 by 4u. An error of e
 *     moves s by s (1 - s) <= 1/4 times it, and |a| s (1 - s) < 0.23. 2u for sum and quotient, u
 *     for ref.
 *   erf, 11u: 8u (4 ulp) for erfcf, less than u for its argument's rounding, u for the product, u
 *     for ref */
template <class T> static void forward(check *t)
{
    for (size_t n : sizes)
        for (int kind = SGT_GELU_TANH; kind <= SGT_GELU_ERF; kind++) {
            T *x = arguments<T>(t, n), *out = cuda_output<T>(t, n);
            float *in = cuda_floats(t, x, n), *want = check_output(t, n);
            double *bound = check_doubles(t, n);
            check_at(t, "n %zu, %s", n, kind == SGT_GELU_TANH ? "tanh" : "erf");
            t->ref->gelu(want, in, n, (sgt_gelu_kind)kind);
            sgt_cuda_gelu(0, Type<T>::id, out, x, n, (sgt_gelu_kind)kind);
            for (size_t i = 0; i < n; i++)
                bound[i] = (kind == SGT_GELU_TANH ? 6 : 11) * UNIT * fabs(in[i]);
            stored_as<T>(bound, want, n);
            cuda_sync(t);
            check_close(t, "out", cuda_floats(t, out, n), want, bound, n);
        }
}

/* Bounds, relative to dout.
 *   tanh, 27u: 4u for s. e s^2 is off by (5|a| + 4) u, and the other factors of x s (1 - s) 2u' by
 *     11u, with u' the derivative of tanh's argument. The product is at most 0.64, and at most 2.3
 *     times |a|: 22u more. The sum and ref's rounding are the rest. Far out the slope is below
 *     2^-120 but not 0: 1e-30 covers it.
 *   erf, 15u: 10u for Phi. x phi is at most 0.25 and off by (1.5 x^2 + 6) u, with |x|^3 phi < 0.47:
 *     3u more. 2u for the product and for ref. */
template <class T> static void backward(check *t)
{
    for (size_t n : sizes)
        for (int kind = SGT_GELU_TANH; kind <= SGT_GELU_ERF; kind++) {
            T *x = arguments<T>(t, n), *dout = cuda_random<T>(t, n, 1), *dx = cuda_output<T>(t, n);
            float *in = cuda_floats(t, x, n), *slope_of = cuda_floats(t, dout, n),
                  *want = check_output(t, n);
            double *bound = check_doubles(t, n);
            check_at(t, "n %zu, %s", n, kind == SGT_GELU_TANH ? "tanh" : "erf");
            t->ref->gelu_backward(want, slope_of, in, n, (sgt_gelu_kind)kind);
            sgt_cuda_gelu_backward(0, Type<T>::id, dx, dout, x, n, (sgt_gelu_kind)kind);
            for (size_t i = 0; i < n; i++)
                bound[i] = (kind == SGT_GELU_TANH ? 27 : 15) * UNIT * fabs(slope_of[i]) + 1e-30;
            stored_as<T>(bound, want, n);
            cuda_sync(t);
            check_close(t, "dx", cuda_floats(t, dx, n), want, bound, n);
            sgt_cuda_gelu_backward(0, Type<T>::id, dout, dout, x, n, (sgt_gelu_kind)kind);
            cuda_sync(t);
            check_equal(t, "dx in dout's place", cuda_floats(t, dout, n), cuda_floats(t, dx, n), n);
        }
}

CUDA_CASES_BY_TYPE(cuda_gelu, forward)
CUDA_CASES_BY_TYPE(cuda_gelu_backward, backward)
