// attention_naive.cu: kernels for --attention naive, which stores all T x T scores of each head.
// The matrix products are not in this file. The kernels here split rows into heads, merge heads
// into rows, and compute the causal softmax of stored scores. A warp processes one row of scores.
#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/softmax.cuh"

using namespace sgt;

enum { THREADS = 256, WARPS = THREADS / 32 };

// ---- convert between one array (B, T, parts, H, D) and `parts` arrays (B, H, T, D) ----

template <class T> struct Parts {
    T *part[3], *packed;
    size_t n; // number of elements in `packed`
    int parts, length, heads, D;
};

template <class T, int V, bool SPLIT>
__global__ void __launch_bounds__(THREADS) heads_kernel(Parts<T> a)
{
    dev::after_previous();
    size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * V, rest = i / a.D;
    if (i >= a.n) return;
    size_t h = rest % a.heads, p = rest / a.heads % a.parts, place = rest / a.heads / a.parts;
    size_t row = (place / a.length * a.heads + h) * a.length + place % a.length;
    T *part = (p == 0 ? a.part[0] : p == 1 ? a.part[1] : a.part[2]) + row * a.D + i % a.D;
    float x[V];
    load(x, SPLIT ? a.packed + i : part);
    store(SPLIT ? part : a.packed + i, x);
}

// Copy between the array `packed` and one or three separate arrays. If `split` is true, copy from
// `packed` to the separate arrays, else from these to `packed`.
static void move_heads(sgt_cuda_stream s, const sgt_cuda_heads *h, bool split, const void *packed,
                       const void *first, const void *second, const void *third)
{
    int parts = second ? 3 : 1;
    size_t n = h->B * h->T * parts * h->H * h->D;
    if (n == 0) return;
    by_type_and_width(h->type, h->D, [&](auto zero, auto width) {
        using N = decltype(zero);
        Parts<N> a = {{(N *)first, (N *)second, (N *)third},
                      (N *)packed,
                      n,
                      parts,
                      (int)h->T,
                      (int)h->H,
                      (int)h->D};
        dim3 grid(blocks_for(n, THREADS * width)), block(THREADS);
        if (split) DEV_LAUNCH((heads_kernel<N, width, true>), grid, block, 0, s, a);
        else DEV_LAUNCH((heads_kernel<N, width, false>), grid, block, 0, s, a);
    });
}

void sgt_cuda_split_heads(sgt_cuda_stream s, const sgt_cuda_heads *a, void *q, void *k, void *v,
                          const void *qkv)
{
    move_heads(s, a, true, qkv, q, k, v);
}

void sgt_cuda_join_heads(sgt_cuda_stream s, const sgt_cuda_heads *a, void *qkv, const void *q,
                         const void *k, const void *v)
{
    move_heads(s, a, false, qkv, q, k, v);
}

// ---- scores (B, H, T, T): of the B*H*T rows, row r has the scores of query r % T ----

template <class T> struct Scores {
    using Number = T;
    // Array that the kernel changes in place. The forward pass replaces scores with probabilities.
    // The backward pass replaces gradients of probabilities with gradients of scores. In
    // drop_probs, x is the output array, and `probs` is the input array.
    T *x;
    const T *probs;
    size_t rows;
    int length, heads;
    float scale;
    sgt_cuda_dropout drop;
    // (B, T) array: start of each position's document; NULL if each row of the batch is one
    // document. The kernels ignore the old values in x for keys that a query does not see, so these
    // values can be anything, even NaN.
    const int32_t *start;
};

// Compute the dropout factors of row r of the scores, for the V keys from index `key` on.
template <class T, int V>
DEV void key_factors(float (&factor)[V], const Scores<T> &a, size_t r, int key)
{
    DEV_UNROLL_FOR (int i = 0; i < V; i++) factor[i] = 1;
    if (!(a.drop.rate > 0)) return;
    const sgt_cuda_place &place = *a.drop.place;
    size_t query = r % a.length, h = r / a.length % a.heads, b = r / a.length / a.heads;
    uint64_t draw = sgt_dropout_draw(place.step, a.drop.layer, a.drop.site);
    uint64_t at =
        sgt_dropout_attention_element(step_row(place, b), h, query, key, a.heads, a.length);
    if constexpr (V == 1) {
        factor[0] = sgt_dropout_factor(place.seed, draw, at, a.drop.rate);
    } else {
        DEV_UNROLL_FOR (int i = 0; i < V; i += 4)
            sgt_dropout_four(factor + i, place.seed, draw, at + i, a.drop.rate);
    }
}

template <class T> DEV int first_key(const Scores<T> &a, size_t r)
{
    return a.start ? a.start[r / a.length / a.heads * a.length + r % a.length] : 0;
}

template <class T, int V>
__global__ void __launch_bounds__(THREADS) causal_softmax_kernel(Scores<T> a)
{
    dev::after_previous();
    size_t r = (size_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (r >= a.rows) return;
    T *row = a.x + r * a.length;
    int last = (int)(r % a.length), first = threadIdx.x % 32 * V;
    int from = first_key(a, r);
    Sum s = {LOWEST, 0};
    float x[V] = {};
    for (int c = first; c <= last; c += 32 * V) {
        load(x, row + c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++)
            x[i] = c + i <= last && c + i >= from ? x[i] * a.scale : -INFINITY;
        add_exps(s, x);
    }
    s = warp_combine(s);
    float by = 1 / s.total;
    for (int c = first; c < a.length; c += 32 * V) {
        if (c <= last) load(x, row + c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++)
            x[i] = c + i <= last && c + i >= from ? exp_fast(x[i] * a.scale - s.max) * by : 0;
        store(row + c, x);
    }
}

template <class T, int V> __global__ void __launch_bounds__(THREADS) drop_probs_kernel(Scores<T> a)
{
    dev::after_previous();
    size_t r = (size_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (r >= a.rows) return;
    int last = (int)(r % a.length);
    for (int c = threadIdx.x % 32 * V; c < a.length; c += 32 * V) {
        float x[V] = {}, factor[V];
        if (c <= last) {
            load(x, a.probs + r * a.length + c);
            key_factors(factor, a, r, c);
            DEV_UNROLL_FOR (int i = 0; i < V; i++) x[i] *= factor[i];
        }
        store(a.x + r * a.length + c, x);
    }
}

// Load V elements of row r, from column c on: p, the probabilities before dropout, and dp, the
// gradients of p. a.x holds the gradients of the probabilities after dropout, which are multiplied
// by the dropout factors to get dp. For keys that the query does not see, dp is 0.
template <class T, int V>
DEV void load_slopes(float (&p)[V], float (&dp)[V], const Scores<T> &a, size_t r, int c)
{
    float factor[V];
    int last = (int)(r % a.length), from = first_key(a, r);
    load(p, a.probs + r * a.length + c);
    load(dp, a.x + r * a.length + c);
    key_factors(factor, a, r, c);
    DEV_UNROLL_FOR (int i = 0; i < V; i++)
        dp[i] = c + i <= last && c + i >= from ? dp[i] * factor[i] : 0;
}

template <class T, int V>
__global__ void __launch_bounds__(THREADS) causal_softmax_backward_kernel(Scores<T> a)
{
    dev::after_previous();
    size_t r = (size_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (r >= a.rows) return;
    int last = (int)(r % a.length), first = threadIdx.x % 32 * V;
    float p[V], dp[V], mean = 0;
    for (int c = first; c <= last; c += 32 * V) {
        load_slopes(p, dp, a, r, c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) mean += p[i] * dp[i]; // p is 0 past the last key
    }
    mean = dev::warp_sum(mean);
    for (int c = first; c < a.length; c += 32 * V) {
        float ds[V] = {};
        if (c <= last) {
            load_slopes(p, dp, a, r, c);
            DEV_UNROLL_FOR (int i = 0; i < V; i++) ds[i] = a.scale * p[i] * (dp[i] - mean);
        }
        store(a.x + r * a.length + c, ds);
    }
}

// Call f(width, grid, block, scores) to launch a kernel in which each warp processes one row of
// scores. `width` is the number of elements that a lane handles at once, as in by_type_and_width.
template <class F> static void by_rows(const sgt_cuda_heads *h, void *x, const void *probs, F f)
{
    size_t rows = h->B * h->H * h->T;
    if (rows == 0) return;
    by_type_and_width(h->type, h->T, [&](auto zero, auto width) {
        using N = decltype(zero);
        f(width, dim3(blocks_for(rows, WARPS)), dim3(THREADS),
          Scores<N>{(N *)x, (const N *)probs, rows, (int)h->T, (int)h->H, h->scale,
                    h->drop ? *h->drop : sgt_cuda_dropout(),
                    h->documents ? h->documents->start : NULL});
    });
}

void sgt_cuda_causal_softmax(sgt_cuda_stream s, const sgt_cuda_heads *h, void *scores)
{
    by_rows(h, scores, NULL, [&](auto width, dim3 grid, dim3 block, auto a) {
        DEV_LAUNCH((causal_softmax_kernel<typename decltype(a)::Number, width>), grid, block, 0, s,
                   a);
    });
}

void sgt_cuda_drop_probs(sgt_cuda_stream s, const sgt_cuda_heads *h, void *out, const void *probs)
{
    by_rows(h, out, probs, [&](auto width, dim3 grid, dim3 block, auto a) {
        DEV_LAUNCH((drop_probs_kernel<typename decltype(a)::Number, width>), grid, block, 0, s, a);
    });
}

void sgt_cuda_causal_softmax_backward(sgt_cuda_stream s, const sgt_cuda_heads *h, void *dprobs,
                                      const void *probs)
{
    by_rows(h, dprobs, probs, [&](auto width, dim3 grid, dim3 block, auto a) {
        DEV_LAUNCH((causal_softmax_backward_kernel<typename decltype(a)::Number, width>), grid,
                   block, 0, s, a);
    });
}
