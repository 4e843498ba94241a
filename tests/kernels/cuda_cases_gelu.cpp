/* cuda_cases_gelu.cpp: GELU and its gradient on the device. */
#include "tests/kernels/cuda_types.h"

static const size_t sizes[] = {0, 1, 3, 7, 8, 9, 133, 2048, 2055};
static const float special[] = {0,  -0.0f, 1e-6f, 5.5f,  -5.5f, 13.4f, -13.4f,
                                40, -40,   1e4f,  -1e4f, 6e4f,  -6e4f};

/* Mostly where the function bends, some far out. */
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

/* The exponent a is good to 5u|a|, exp2 to 4u; s = 1/(1 + e) moves by s (1 - s) <= 1/4 times that,
 * |a| s (1 - s) < 0.23; 2u for sum and quotient, one for ref: 6u|x|. erfcf is good to 4 ulp (8u)
 * and its argument's rounding costs under u; product and ref one each: 11u|x|. */
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

/* tanh: s 4u; e s^2 is good to (5|a| + 4) u, the other factors to 11u; x s (1 - s) 2u' is at most
 * 0.64 and times |a| at most 2.3: 12 + 10 u more, 26 with the sum and ref's rounding; below 2^-120
 * the slope is not 0. erf: Phi 10u; x phi is at most 0.25, good to 1.5 x^2 + 6 u, |x|^3 phi < 0.47:
 * 13u and two more for product and ref. */
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
