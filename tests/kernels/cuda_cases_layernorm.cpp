/* cuda_cases_layernorm.cpp: layer normalization on the device, forward and backward, and fused with
 * the residual sum. */
#include "tests/kernels/cuda_types.h"
#include "tests/kernels/bounds.h"
#include "kernels/dropout.h"

struct shape {
    size_t n, C;
};
static const shape shapes[] = {{0, 8},    {1, 1},   {2, 7},   {3, 8},    {5, 33},
                               {9, 64},   {8, 65},  {4, 264}, {17, 256}, {13, 77},
                               {5, 1600}, {3, 768}, {6, 520}, {2, 1280}};

/* Return the number of additions in a chain: a lane adds at most C/32 + 1 vectors of up to 8
 * numbers, and 5 sums by shuffles follow. */
static double chain(size_t C) { return (double)C / 32 + 13; }

/* Odd n: with a bias of y. */
template <class T> static void forward_at(check *t, size_t n, size_t C)
{
    float offset = check_number(t, 3) ? 0 : 30, *stats[2], *want[3];
    float *shifted = check_random(t, n * C, 3);
    for (size_t i = 0; i < n * C; i++) shifted[i] += offset;
    T *x = cuda_output<T>(t, n * C), *y = cuda_random<T>(t, n * C, 2);
    T *sum = cuda_output<T>(t, n * C), *out = cuda_output<T>(t, n * C);
    const float *w = cuda_random<float>(t, C, 2), *b = cuda_random<float>(t, C, 1);
    const T *bias = n % 2 ? cuda_random<T>(t, C, 2) : nullptr;
    for (size_t i = 0; i < n * C; i++) x[i] = dev::from_float<T>(shifted[i]);
    for (int i = 0; i < 2; i++) stats[i] = cuda_output<float>(t, n), want[i] = check_output(t, n);
    want[2] = check_output(t, n * C);
    check_at(t, "n %zu, C %zu, x about %g", n, C, (double)offset);
    sgt_cuda_residual_layernorm(0, Type<T>::id, sum, out, stats[0], stats[1], x, y, bias, w, b, n,
                                C, EPS, NULL);
    cuda_sync(t);
    const float *fx = cuda_floats(t, x, n * C), *fy = cuda_floats(t, y, n * C),
                *got = cuda_floats(t, sum, n * C);
    const float *added = bias ? cuda_floats(t, bias, C) : nullptr;
    float *plain = check_output(t, n * C);
    for (size_t i = 0; i < n * C; i++)
        plain[i] = dev::to_float(dev::from_float<T>(fx[i] + (bias ? fy[i] + added[i % C] : fy[i])));
    check_equal(t, "sum", got, plain, n * C);
    /* layernorm of the sum in its stored form */
    t->ref->layernorm(want[2], want[0], want[1], plain, w, b, n, C, EPS);
    double *bound = check_doubles(t, n * C), *mean = check_doubles(t, n),
           *rstd = check_doubles(t, n);
    for (size_t i = 0; i < n; i++)
        row_bounds(bound + i * C, mean + i, rstd + i, plain + i * C, w, b, C, chain(C), 1);
    stored_as<T>(bound, want[2], n * C);
    check_close(t, "mean", stats[0], want[0], mean, n);
    check_close(t, "rstd", stats[1], want[1], rstd, n);
    check_close(t, "out", cuda_floats(t, out, n * C), want[2], bound, n * C);
    T *again = cuda_output<T>(t, n * C); /* without a residual, given the sum: the same bits */
    sgt_cuda_residual_layernorm(0, Type<T>::id, nullptr, again, stats[0], stats[1], sum, nullptr,
                                nullptr, w, b, n, C, EPS, nullptr);
    sgt_cuda_residual_layernorm(0, Type<T>::id, x, sum, stats[0], stats[1], x, y, bias, w, b, n, C,
                                EPS, NULL);
    cuda_sync(t);
    check_equal(t, "out of layernorm alone", cuda_floats(t, again, n * C),
                cuda_floats(t, out, n * C), n * C);
    check_equal(t, "sum in x's place", cuda_floats(t, x, n * C), plain, n * C);
}

template <class T> static void forward(check *t)
{
    for (const shape &s : shapes) forward_at<T>(t, s.n, s.C);
    /* more rows than warps in the grid, so some warps have a second row */
    forward_at<T>(t, 2113, 8);
}

/* Test the gradients of n rows, and if n is odd, the sums of the columns of dx. `first`: dx is written
 * and not added to. Bounds:
 *   dx: two sums along the row, (chain + 4) u |terms| each, and a few roundings of each term
 *   dw, db: n rows in at most n + 13 additions (rows of a warp, warps, blocks, groups of blocks); a
 *     term of dw has four more roundings */
template <class T> static void backward_at(check *t, size_t n, size_t C, int first)
{
    T *x = cuda_random<T>(t, n * C, 3), *dout = cuda_random<T>(t, n * C, 1);
    T *dx = cuda_random<T>(t, n * C, 1);
    const float *w = cuda_random<float>(t, C, 2);
    float *mean = cuda_output<float>(t, n), *rstd = cuda_output<float>(t, n);
    const float *fx = cuda_floats(t, x, n * C), *fd = cuda_floats(t, dout, n * C);
    float *want = cuda_floats(t, dx, n * C), *sums[3], *want_sums[3],
          *unused = check_output(t, n * C);
    for (int i = 0; i < 3; i++) {
        want_sums[i] = check_random(t, C, 1);
        sums[i] = cuda_copy<float>(t, want_sums[i], C);
    }
    for (size_t i = 0; i < n * C && first; i++) want[i] = 0, dx[i] = dev::from_float<T>(NAN);
    double *bound = check_doubles(t, n * C),
           *bounds[2] = {check_doubles(t, C), check_doubles(t, C)};
    check_at(t, "n %zu, C %zu, first %d", n, C, first);
    t->ref->layernorm(unused, mean, rstd, fx, w, want_sums[0], n, C, EPS);
    t->ref->layernorm_backward(want, want_sums[0], want_sums[1], fd, fx, mean, rstd, w, n, C);
    char *scratch = cuda_output<char>(t, sgt_cuda_layernorm_backward_scratch(Type<T>::id, n, C));
    sgt_cuda_layernorm_backward(0, Type<T>::id, dx, first, sums[0], sums[1], n % 2 ? sums[2] : NULL,
                                dout, x, mean, rstd, w, n, C, scratch);
    const gradients g = {n, C, fx, w, fd, mean, rstd, want, want_sums[0], want_sums[1]};
    gradient_bounds(bound, bounds[0], bounds[1], &g, chain(C), 12);
    stored_as<T>(bound, want, n * C);
    cuda_sync(t);
    check_close(t, "dx", cuda_floats(t, dx, n * C), want, bound, n * C);
    check_close(t, "dw", sums[0], want_sums[0], bounds[0], C);
    check_close(t, "db", sums[1], want_sums[1], bounds[1], C);
    const float *stored = cuda_floats(t, dx, n * C);
    /* sums over the columns of dx as stored, so only the sums have errors */
    double *columns = check_doubles(t, C);
    for (size_t c = 0; c < C && n % 2; c++) columns[c] = fabs(want_sums[2][c]);
    for (size_t i = 0; i < n * C && n % 2; i++) columns[i % C] += fabs(stored[i]);
    for (size_t c = 0; c < C; c++) columns[c] *= (double)(n + 13) * UNIT;
    if (n % 2) t->ref->bias_backward(want_sums[2], stored, n, C, C, 0);
    check_close(t, "dx's columns", sums[2], want_sums[2], columns, C);
}

template <class T> static void backward(check *t)
{
    for (const shape &s : shapes)
        for (int first = 0; first <= 1; first++) backward_at<T>(t, s.n, s.C, first);
    /* more rows than warps in the grid, so some warps have a second row */
    backward_at<T>(t, 1601, 8, 0);
    backward_at<T>(t, 1101, 7, 0);
}

CUDA_CASES_BY_TYPE(cuda_layernorm, forward)
CUDA_CASES_BY_TYPE(cuda_layernorm_backward, backward)
