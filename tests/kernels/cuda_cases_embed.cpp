/* cuda_cases_embed.cpp: embeddings on the device, the sort of ids for their gradient, sums over
 * rows, and where a batch's documents begin and end. */
#include <algorithm>

#include "tests/kernels/cuda_types.h"

struct shape {
    size_t n, T, C;
    int32_t V;
};
/* With a small vocabulary V, the sorted ids have long runs of one id, over several chunks of 64.
 * Some n are below T, and some are not multiples of T. */
static const shape shapes[] = {{1, 4, 8, 10},   {63, 64, 5, 1},      {65, 16, 8, 1},
                               {64, 16, 8, 3},  {65, 16, 24, 70001}, {200, 50, 16, 2},
                               {257, 64, 7, 1}, {640, 64, 8, 5},     {300, 100, 264, 40}};

template <class T> static void forward(check *t)
{
    for (const shape &s : shapes) {
        size_t V = s.V < 100 ? (size_t)s.V : 100;
        T *wte = cuda_random<T>(t, V * s.C, 1), *wpe = cuda_random<T>(t, s.T * s.C, 1);
        T *out = cuda_output<T>(t, s.n * s.C), *want = cuda_output<T>(t, s.n * s.C);
        int32_t *ids = cuda_copy<int32_t>(t, check_ids(t, s.n, (int32_t)V), s.n);
        check_at(t, "n %zu, T %zu, C %zu", s.n, s.T, s.C);
        sgt_cuda_embed(0, Type<T>::id, out, ids, wte, wpe, s.n, s.T, s.C, NULL);
        for (size_t i = 0; i < s.n * s.C; i++) {
            size_t row = i / s.C, c = i % s.C;
            want[i] = dev::from_float<T>(dev::to_float(wte[ids[row] * s.C + c]) +
                                         dev::to_float(wpe[row % s.T * s.C + c]));
        }
        cuda_sync(t);
        check_equal(t, "out", cuda_floats(t, out, s.n * s.C), cuda_floats(t, want, s.n * s.C),
                    s.n * s.C);
    }
}

/* A block sorts 256 numbers, or 512 if there are more than 32,768. */
CUDA_CASE(cuda_embed_sort)
{
    for (size_t n : {(size_t)1, (size_t)255, (size_t)256, (size_t)3001, (size_t)33003})
        for (int32_t V : {1, 5, 1000, 65536, 1 << 20, 1 << 30}) {
            int32_t *ids = cuda_copy<int32_t>(t, check_ids(t, n, V), n),
                    *sorted = cuda_output<int32_t>(t, n);
            int32_t *order = cuda_output<int32_t>(t, n), *want = cuda_output<int32_t>(t, n);
            for (size_t i = 0; i < n && V >= 65536; i++)
                ids[i] = ids[i] / 4096 * 4096 + (int32_t)(i % 3);
            char *scratch = cuda_output<char>(t, sgt_cuda_embed_sort_scratch(n));
            check_at(t, "n %zu, V %d", n, V);
            sgt_cuda_embed_sort(0, sorted, order, ids, (size_t)V, n, scratch);
            for (size_t i = 0; i < n; i++) want[i] = (int32_t)i;
            std::stable_sort(want, want + n, [&](int32_t a, int32_t b) { return ids[a] < ids[b]; });
            cuda_sync(t);
            for (size_t i = 0; i < n; i++)
                if (order[i] != want[i] || sorted[i] != ids[want[i]]) {
                    check_fail(t, "place %zu is %d with id %d, not %d with %d", i, order[i],
                               sorted[i], want[i], ids[want[i]]);
                    break;
                }
        }
}

/* Bound: at most n + 1 float additions to each sum, here and in ref, in different orders. */
template <class T> static void backward(check *t)
{
    for (const shape &s : shapes) {
        size_t n = s.n, C = s.C, V = (size_t)s.V, sizes[2] = {V * C, s.T * C};
        int32_t *ids = cuda_copy<int32_t>(t, check_ids(t, n, s.V), n),
                *order = cuda_output<int32_t>(t, n);
        int32_t *sorted = cuda_output<int32_t>(t, n);
        T *dout = cuda_random<T>(t, n * C, 1);
        const float *plain = cuda_floats(t, dout, n * C);
        float *want[2], *got[2];
        double *bound[2];
        for (int i = 0; i < 2; i++) {
            want[i] = check_random(t, sizes[i], 1), got[i] = cuda_copy<float>(t, want[i], sizes[i]);
            bound[i] = check_doubles(t, sizes[i]);
            for (size_t j = 0; j < sizes[i]; j++) bound[i][j] = fabs(want[i][j]);
        }
        for (size_t i = 0; i < n * C; i++) {
            bound[0][(size_t)ids[i / C] * C + i % C] += fabs(plain[i]);
            bound[1][i / C % s.T * C + i % C] += fabs(plain[i]);
        }
        for (int i = 0; i < 2; i++)
            for (size_t j = 0; j < sizes[i]; j++) bound[i][j] *= 2 * (double)(n + 1) * UNIT;
        check_at(t, "n %zu, T %zu, C %zu, V %zu", n, s.T, C, V);
        sgt_cuda_embed_sort(0, sorted, order, ids, V, n,
                            cuda_output<char>(t, sgt_cuda_embed_sort_scratch(n)));
        sgt_cuda_embed_backward(0, Type<T>::id, got[0], got[1], sorted, order, dout, n, s.T, C,
                                cuda_output<char>(t, sgt_cuda_embed_backward_scratch(n, C)));
        t->ref->embed_backward(want[0], want[1], ids, plain, n, s.T, C, 0, C);
        cuda_sync(t);
        check_close(t, "dwte", got[0], want[0], bound[0], sizes[0]);
        check_close(t, "dwpe", got[1], want[1], bound[1], sizes[1]);
    }
}

CUDA_CASES_BY_TYPE(cuda_embed, forward)
CUDA_CASES_BY_TYPE(cuda_embed_backward, backward)

/* Bound: n + 8 float additions, where ref adds in double. */
template <class T> static void bias(check *t)
{
    for (size_t n : {0, 1, 9, 63, 65, 600, 2500 /* enough slices for some warps to have two */})
        for (size_t C : {1, 8, 33, 256, 264, 777}) {
            if (n > 600 && C > 8) continue;
            T *dout = cuda_random<T>(t, n * C, 1);
            float *want = check_random(t, C, 1), *got = cuda_copy<float>(t, want, C);
            const float *plain = cuda_floats(t, dout, n * C);
            double *bound = check_doubles(t, C);
            for (size_t c = 0; c < C; c++) bound[c] = fabs(want[c]);
            for (size_t i = 0; i < n * C; i++) bound[i % C] += fabs(plain[i]);
            for (size_t c = 0; c < C; c++) bound[c] *= (double)(n + 10) * UNIT;
            check_at(t, "n %zu, C %zu", n, C);
            sgt_cuda_bias_backward(0, Type<T>::id, got, dout, n, C,
                                   cuda_output<char>(t, sgt_cuda_bias_backward_scratch(n, C)));
            t->ref->bias_backward(want, plain, n, C, C, 0);
            cuda_sync(t);
            check_close(t, "db", got, want, bound, C);
        }
}

CUDA_CASES_BY_TYPE(cuda_bias_backward, bias)

/* Documents begin at both ends of a row, at both ends of the 32 tokens that a warp checks in one
 * step, next to each other, nowhere, and at every token. */
CUDA_CASE(cuda_place_documents)
{
    for (size_t B : {0, 1, 3})
        for (size_t T : {1, 7, 32, 33, 64, 300})
            for (uint64_t one_in : {1, 2, 40, 100000}) {
                size_t n = B * T;
                int32_t *starts = cuda_output<int32_t>(t, n), *start = cuda_output<int32_t>(t, n);
                int32_t *end = cuda_output<int32_t>(t, n);
                for (size_t i = 0; i < n; i++)
                    starts[i] =
                        i % T == 0 || !check_number(t, one_in) ? (int32_t)(i % T) : starts[i - 1];
                sgt_cuda_documents documents = {start, end};
                check_at(t, "B %zu, T %zu, one in %llu", B, T, (unsigned long long)one_in);
                sgt_cuda_place_documents(0, &documents, starts, B, T);
                cuda_sync(t);
                for (size_t i = 0; i < n; i++) {
                    size_t to = i % T + 1, row = i / T * T;
                    while (to < T && starts[row + to] != (int32_t)to) to++;
                    if (start[i] != starts[i] || end[i] != (int32_t)to)
                        check_fail(t, "%zu: %d to %d, not %d to %zu", i, start[i], end[i],
                                   starts[i], to);
                }
            }
}
