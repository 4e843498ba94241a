/* cuda_cases_unfused.cpp: the kernels that --no-fuse and --attention naive use instead of the fused
 * kernels. */
#include "tests/kernels/cuda_types.h"
#include "kernels/dropout.h"

static const size_t sizes[] = {0, 1, 3, 8, 9, 133, 2048, 2055};

/* One addition, which rounds once, so the only further error is the rounding to T. */
template <class T> static void elementwise(check *t)
{
    for (size_t n : sizes) {
        T *x = cuda_random<T>(t, n, 1), *y = cuda_random<T>(t, n, 1), *out = cuda_output<T>(t, n);
        const float *fx = cuda_floats(t, x, n), *fy = cuda_floats(t, y, n);
        const float *p = cuda_copy<float>(t, check_random(t, n, 3), n);
        float *sum = check_output(t, n), *converted = check_output(t, n);
        for (size_t i = 0; i < n; i++) {
            sum[i] = dev::to_float(dev::from_float<T>(fx[i] + fy[i]));
            converted[i] = dev::to_float(dev::from_float<T>(p[i]));
        }
        check_at(t, "n %zu", n);
        sgt_cuda_add(0, Type<T>::id, out, x, y, n);
        sgt_cuda_add(0, Type<T>::id, x, x, y, n);
        cuda_sync(t);
        check_equal(t, "sum", cuda_floats(t, out, n), sum, n);
        check_equal(t, "sum in place", cuda_floats(t, x, n), sum, n);
        sgt_cuda_convert(0, Type<T>::id, out, p, n);
        cuda_sync(t);
        check_equal(t, "converted", cuda_floats(t, out, n), converted, n);
    }
}

template <class T> static void add_bias(check *t)
{
    for (size_t C : {1, 8, 33, 264, 2056})
        for (size_t n : {0, 1, 3}) {
            T *x = cuda_random<T>(t, n * C, 1), *b = cuda_random<T>(t, C, 1);
            const float *bias = cuda_floats(t, b, C);
            float *want = cuda_floats(t, x, n * C);
            for (size_t i = 0; i < n * C; i++)
                want[i] = dev::to_float(dev::from_float<T>(want[i] + bias[i % C]));
            check_at(t, "n %zu, C %zu", n, C);
            sgt_cuda_add_bias(0, Type<T>::id, x, b, n, C);
            cuda_sync(t);
            check_equal(t, "x", cuda_floats(t, x, n * C), want, n * C);
        }
}

CUDA_CASES_BY_TYPE(cuda_elementwise, elementwise)
CUDA_CASES_BY_TYPE(cuda_add_bias, add_bias)

/* ---- attention by whole matrices ---- */

struct shape {
    size_t B, T, H, D;
};
static const shape shapes[] = {
    {1, 1, 1, 1}, {2, 5, 3, 8}, {1, 9, 2, 7}, {3, 40, 2, 24}, {1, 300, 1, 8}};

template <class T> static void heads(check *t)
{
    for (const shape &s : shapes) {
        size_t n = s.B * s.T * s.H * s.D;
        T *qkv = cuda_random<T>(t, 3 * n, 1), *back = cuda_output<T>(t, 3 * n),
          *one = cuda_output<T>(t, n);
        T *part[3];
        for (T *&p : part) p = cuda_output<T>(t, n);
        const float *x = cuda_floats(t, qkv, 3 * n);
        float *want[3], *plain = check_output(t, n);
        for (float *&w : want) w = check_output(t, n);
        for (size_t i = 0; i < n; i++) { /* i counts the elements of (B, H, T, D) */
            size_t d = i % s.D, place = i / s.D % s.T, h = i / s.D / s.T % s.H,
                   b = i / s.D / s.T / s.H;
            size_t at = (b * s.T + place) * s.H + h, packed = (b * s.T + place) * 3 * s.H + h;
            for (size_t p = 0; p < 3; p++) want[p][i] = x[(packed + p * s.H) * s.D + d];
            plain[i] = x[at * s.D + d];
        }
        check_at(t, "B %zu, T %zu, H %zu, D %zu", s.B, s.T, s.H, s.D);
        const sgt_cuda_heads a = {Type<T>::id, 0, s.B, s.T, s.H, s.D, 1, NULL, NULL};
        sgt_cuda_split_heads(0, &a, part[0], part[1], part[2], qkv);
        sgt_cuda_join_heads(0, &a, back, part[0], part[1], part[2]);
        cuda_sync(t);
        for (int p = 0; p < 3; p++)
            check_equal(t, "a part", cuda_floats(t, part[p], n), want[p], n);
        check_equal(t, "joined", cuda_floats(t, back, 3 * n), x, 3 * n);
        sgt_cuda_split_heads(0, &a, one, NULL, NULL, qkv);
        sgt_cuda_join_heads(0, &a, back, one, NULL, NULL);
        cuda_sync(t);
        check_equal(t, "one", cuda_floats(t, one, n), plain, n);
        check_equal(t, "merged", cuda_floats(t, back, n), x, n);
    }
}

CUDA_CASES_BY_TYPE(cuda_heads, heads)

/* Draw scores. Some of those after the diagonal or before the document are NaN, as after an
 * overflow of the matrix product. The kernels must ignore them. */
template <class T, class F>
static T *random_scores(check *t, const shape &s, float spread, float **plain, F first)
{
    size_t n = s.B * s.H * s.T * s.T;
    T *x = cuda_random<T>(t, n, spread);
    for (size_t i = 0; i < n; i++)
        if ((i % s.T > i / s.T % s.T || i % s.T < first(i / s.T)) && check_number(t, 3) == 0)
            x[i] = dev::from_float<T>(NAN);
    *plain = cuda_floats(t, x, n);
    return x;
}

/* Bounds of softmax and its gradient.
 *   score times scale: u |s|
 *   exp: 3u of the range, for s - max, log2(e) and exp2's argument; 4u for exp2
 *   rescales: one for each 32 keys; sums: T/32 + 5 additions; the quotient and the product with
 *     it
 *   gradient, from given p and dp: T/32 + 5 additions of f |p dp|, each term with two roundings;
 *     then four operations; the factor's product is exact or rounds once */
template <class T>
static void softmax_at(check *t, const shape &s, const sgt_cuda_dropout *drop,
                       const sgt_cuda_documents *documents)
{
    auto first = [&](size_t r) -> size_t {
        return documents ? documents->start[r / s.T / s.H * s.T + r % s.T] : 0;
    };
    size_t n = s.B * s.H * s.T * s.T;
    float *x, *dx, scale = 0.37f, *want = check_output(t, n), *slope = check_output(t, n),
                   *kept = check_output(t, n);
    T *scores = random_scores<T>(t, s, 9, &x, first),
      *dprobs = random_scores<T>(t, s, 1, &dx, first);
    T *out = cuda_output<T>(t, n);
    double *bound = check_doubles(t, n), *slope_bound = check_doubles(t, n),
           sums = (double)s.T / 32 + 8;
    check_at(t, "B %zu, H %zu, T %zu%s%s", s.B, s.H, s.T, drop ? ", dropout" : "",
             documents ? ", documents" : "");
    for (size_t r = 0; r < s.B * s.H * s.T; r++) {
        const float *row = x + r * s.T;
        double max = -INFINITY, min = INFINITY, total = 0;
        for (size_t j = first(r); j <= r % s.T; j++)
            max = fmax(max, (double)scale * row[j]), min = fmin(min, (double)scale * row[j]);
        for (size_t j = first(r); j <= r % s.T; j++) total += exp((double)scale * row[j] - max);
        double e = (3 * (max - min) + 2 * fmax(fabs(max), fabs(min)) + 5) * ((double)s.T / 32 + 3) +
                   sums + 3;
        for (size_t j = 0; j < s.T; j++) {
            double p =
                j >= first(r) && j <= r % s.T ? exp((double)scale * row[j] - max) / total : 0;
            want[r * s.T + j] = (float)p;
            bound[r * s.T + j] = p * e * UNIT;
        }
    }
    stored_as<T>(bound, want, n);
    for (size_t i = 0; i < n; i++)
        if (i % s.T > i / s.T % s.T || i % s.T < first(i / s.T)) bound[i] = 0;
    const sgt_cuda_heads a = {Type<T>::id, 0, s.B, s.T, s.H, s.D, scale, drop, documents};
    sgt_cuda_causal_softmax(0, &a, scores);
    cuda_sync(t);
    const float *p = cuda_floats(t, scores, n);
    check_close(t, "probabilities", p, want, bound, n);
    for (size_t r = 0; r < s.B * s.H * s.T; r++) {
        double mean = 0, absolute = 0;
        auto at = [&](size_t j) { return r * s.T + j; };
        for (size_t j = 0; j < s.T; j++) {
            kept[at(j)] = 1;
            if (drop) {
                uint64_t row = drop->place->row + r / s.T / s.H * drop->place->ranks;
                uint64_t element =
                    sgt_dropout_attention_element(row, r / s.T % s.H, r % s.T, j, s.H, s.T);
                uint64_t draw = sgt_dropout_draw(drop->place->step, drop->layer, drop->site);
                kept[at(j)] = sgt_dropout_factor(drop->place->seed, draw, element, drop->rate);
            }
        }
        for (size_t j = first(r); j <= r % s.T; j++) {
            double term = (double)p[at(j)] * kept[at(j)] * dx[at(j)];
            mean += term, absolute += fabs(term);
        }
        for (size_t j = 0; j < s.T; j++) {
            /* exactly 0 also where a query sees only its own key */
            if (j > r % s.T || j < first(r) || first(r) == r % s.T) slope[at(j)] = 0;
            else {
                double dp = (double)kept[at(j)] * dx[at(j)], weight = (double)scale * p[at(j)];
                slope[at(j)] = (float)(weight * (dp - mean));
                slope_bound[at(j)] =
                    weight * UNIT * ((sums + 3) * absolute + 2 * fabs(dp) + 5 * fabs(dp - mean));
            }
        }
    }
    stored_as<T>(slope_bound, slope, n);
    for (size_t i = 0; i < n; i++) {
        if (i % s.T > i / s.T % s.T || i % s.T < first(i / s.T) || first(i / s.T) == i / s.T % s.T)
            slope_bound[i] = 0;
        want[i] = dev::to_float(dev::from_float<T>(p[i] * kept[i]));
    }
    if (drop) sgt_cuda_drop_probs(0, &a, out, scores);
    sgt_cuda_causal_softmax_backward(0, &a, dprobs, scores);
    cuda_sync(t);
    if (drop) check_equal(t, "dropped", cuda_floats(t, out, n), want, n);
    check_close(t, "dscores", cuda_floats(t, dprobs, n), slope, slope_bound, n);
}

template <class T> static void causal_softmax(check *t)
{
    sgt_cuda_place place = {77, 123456789012, 11, 3};
    sgt_cuda_dropout drop = {cuda_copy<sgt_cuda_place>(t, &place, 1), 0, 5, SGT_DROP_ATTENTION,
                             0.3f};
    for (const shape &s : shapes) {
        softmax_at<T>(t, s, NULL, NULL);
        softmax_at<T>(t, s, &drop, NULL);
        sgt_cuda_documents documents = {cuda_output<int32_t>(t, s.B * s.T), NULL};
        for (size_t i = 0, from = 0; i < s.B * s.T; i++) {
            if (i % s.T == 0 || check_number(t, 20) == 0) from = i % s.T;
            documents.start[i] = (int32_t)from;
        }
        softmax_at<T>(t, s, &drop, &documents);
    }
}

CUDA_CASES_BY_TYPE(cuda_causal_softmax, causal_softmax)
