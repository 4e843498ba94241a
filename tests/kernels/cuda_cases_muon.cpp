/* cuda_cases_muon.cpp: each pass of Muon's update on the device. tests/step/muon.c tests the whole
 * update. */
#include "tests/kernels/cuda_types.h"

static const size_t sizes[] = {1, 3, 4, 5, 133, 1024, 1027, 66003};

static sgt_cuda_control *control(check *t)
{
    sgt_cuda_control *c = cuda_output<sgt_cuda_control>(t, 1);
    *c = sgt_cuda_control();
    c->lr = .25f, c->mean_scale = .37f, c->grad_scale = .11f;
    return c;
}

/* Bounds: u for each product, sum and constant. After an overflow or a spike, both arrays must be
 * unchanged. */
CUDA_CASE(cuda_muon_momentum)
{
    for (size_t n : sizes)
        for (int skip = 0; skip < 3; skip++) {
            float *m = cuda_copy<float>(t, check_random(t, n, 1), n),
                  *g = cuda_copy<float>(t, check_random(t, n, 3), n), *want_m = check_copy(t, m, n),
                  *want_g = check_copy(t, g, n);
            double *bound = check_doubles(t, n);
            sgt_cuda_control *c = control(t);
            c->found_inf = skip == 1, c->spike = skip == 2;
            check_at(t, "n %zu%s", n, skip ? ", skipped" : "");
            sgt_cuda_muon_momentum(0, m, g, n, c);
            for (size_t i = 0; i < n && !skip; i++) {
                double grad = (double)want_g[i] * c->mean_scale,
                       moment = .95 * want_m[i] + .05 * grad;
                bound[i] = 8 * UNIT * (fabs((double)want_m[i]) + fabs(grad));
                want_m[i] = (float)moment;
                want_g[i] = (float)(.05 * grad + .95 * moment);
            }
            cuda_sync(t);
            check_close(t, "m", m, want_m, bound, n);
            check_close(t, "g", g, want_g, bound, n);
        }
}

/* Three matrices with gaps between them, to which nothing may be written. The second matrix is 0.
 * The factor 1/norm has an error of 2 u, and the product adds one more. */
template <class T> static void normalize(check *t)
{
    for (size_t n : sizes) {
        sgt_cuda_matrices l = {n, 3, (n + 3) / 4 * 4 + 4, (n + 7) / 8 * 8 + 8};
        size_t flat = l.stride * l.matrices, padded = l.stride_x * l.matrices;
        float *u = cuda_output<float>(t, flat), *want = check_output(t, padded),
              *given = check_random(t, flat, 3);
        double *bound = check_doubles(t, padded);
        T *x = cuda_output<T>(t, padded), none;
        check_at(t, "n %zu", n);
        memset(&none, 0xff, sizeof none);
        for (size_t i = 0; i < l.matrices; i++) {
            double squares = 0;
            for (size_t j = 0; j < n; j++) {
                float a = i == 1 ? 0 : given[i * l.stride + j];
                u[i * l.stride + j] = a;
                squares += (double)a * a;
            }
            for (size_t j = 0; j < n; j++) {
                size_t at = i * l.stride_x + j;
                want[at] = (float)(u[i * l.stride + j] / fmax(sqrt(squares), 1e-7));
                bound[at] = 4 * UNIT * fabs((double)want[at]);
            }
        }
        stored_as<T>(bound, want, padded);
        sgt_cuda_muon_normalize(0, Type<T>::id, x, u, &l,
                                cuda_output<char>(t, sgt_cuda_muon_scratch(l.matrices)));
        cuda_sync(t);
        float *got = cuda_floats(t, x, padded);
        for (size_t i = 0; i < l.matrices; i++) {
            size_t at = i * l.stride_x;
            check_close(t, "x", got + at, want + at, bound + at, n);
            for (size_t j = n; j < l.stride_x; j++)
                if (memcmp(&x[at + j], &none, sizeof none) != 0)
                    check_fail(t, "number %zu after a matrix is written", j);
        }
    }
}

CUDA_CASES_BY_TYPE(cuda_muon_normalize, normalize)

/* Bound of p: u for each factor, each product and the difference. */
template <class T> static void update_at(check *t, size_t n, int skip, int keep)
{
    sgt_cuda_matrices l = {n, 2, (n + 7) / 8 * 8 + 8, (n + 7) / 8 * 8 + 16};
    const float decay = .125f, reach = 1.7f;
    size_t flat = l.stride * l.matrices, padded = l.stride_x * l.matrices;
    sgt_cuda_control *c = control(t);
    float *p = cuda_copy<float>(t, check_random(t, flat, 1), flat),
          *g = cuda_copy<float>(t, check_random(t, flat, 1), flat), *old = check_copy(t, p, flat),
          *want = check_copy(t, p, flat), *want_g = check_copy(t, g, flat);
    double *bound = check_doubles(t, flat);
    T *x = cuda_random<T>(t, padded, 1), *copy = cuda_output<T>(t, flat),
      *want_copy = cuda_output<T>(t, flat);
    const float *step = cuda_floats(t, x, padded);
    c->found_inf = skip == 1, c->spike = skip == 2;
    check_at(t, "n %zu%s%s", n, skip ? ", skipped" : "", keep ? ", kept" : "");
    sgt_cuda_muon_update(0, Type<T>::id, copy, p, g, x, &l, decay, reach, keep, c);
    for (size_t i = 0; i < l.matrices; i++)
        for (size_t j = 0; j < n; j++) {
            size_t at = i * l.stride + j;
            double kept = (1 - .25 * .125) * old[at],
                   moved = .25 * (double)reach * step[i * l.stride_x + j];
            if (!keep) want_g[at] = 0;
            if (skip) continue;
            want[at] = (float)(kept - moved);
            bound[at] = 4 * UNIT * (fabs(kept) + fabs(moved));
        }
    cuda_sync(t);
    check_close(t, "p", p, want, bound, flat);
    check_equal(t, "g", g, want_g, flat);
    for (size_t i = 0; i < l.matrices && !skip; i++)
        for (size_t j = 0; j < n; j++)
            want_copy[i * l.stride + j] = dev::from_float<T>(p[i * l.stride + j]);
    check_near(t, "copy", memcmp(copy, want_copy, flat * sizeof *copy), 0, 0);
}

template <class T> static void update(check *t)
{
    for (size_t n : sizes) update_at<T>(t, n < 2000 ? n : 2000, 0, 0);
    for (int way = 1; way < 6; way++) update_at<T>(t, 135, way % 3, way / 3);
}

CUDA_CASES_BY_TYPE(cuda_muon_update, update)
