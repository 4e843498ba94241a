// attention_slopes.cuh: the element-wise steps of the backward pass of attention, which turn scores
// into gradients of scores, for attention_backward.cu and attention_hopper_backward.cu. Include
// attention.cuh before this file. attention.cuh describes the layout of accumulators.
#pragma once

namespace sgt
{

// Set delta (B, H, T) to the sum of dout * out over the D columns of a head. A warp computes the
// sum for one query of one head.
template <class T>
__global__ void __launch_bounds__(ATTENTION_THREADS) delta_kernel(Heads<T> a, size_t rows)
{
    dev::after_previous();
    // index in (B, T, H)
    size_t i = (size_t)blockIdx.x * (ATTENTION_THREADS / 32) + threadIdx.x / 32;
    if (i >= rows) return;
    size_t h = i % a.heads, place = i / a.heads;
    float sum = 0;
    for (int d = threadIdx.x % 32; d < a.D; d += 32)
        sum += number(a.dout[i * a.D + d]) * number(a.out[i * a.D + d]);
    sum = dev::warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        a.delta[(place / a.length * a.heads + h) * a.length + place % a.length] = sum;
}

template <class T> void launch_delta(sgt_cuda_stream s, const sgt_cuda_heads &a, const Heads<T> &h)
{
    size_t rows = a.B * a.T * a.H;
    DEV_LAUNCH(delta_kernel<T>, dim3(blocks_for(rows, ATTENTION_THREADS / 32)),
               dim3(ATTENTION_THREADS), 0, s, h, rows);
}

// Set the scores of queries in later documents to -infinity, because a query sees no key of an
// earlier document. Keys are in rows, queries in columns.
template <int N, class T>
DEV void mask_ended(float (&s)[N][4], const Sight<T> &sight, int key, int query)
{
    mask_columns<false>(s, [&](int row) { return sight.after_queries(key + row) - query; });
}

// Replace the scores with probabilities p. Keys are in rows, queries in columns. The lse (in log2
// units) of column i is lse[i * STEP].
template <int STEP = 1, int N>
DEV void soften_columns(float (&s)[N][4], const float *lse, float scale_log2, int key, int query)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    DEV_UNROLL_FOR (int n = 0; n < N; n++)
        DEV_UNROLL_FOR (int e = 0; e < 4; e++) {
            int column = n * 8 + 2 * t + (e & 1), row = key + g + (e >> 1) * 8;
            s[n][e] = row > query + column
                          ? 0
                          : dev::exp2_fast(s[n][e] * scale_log2 - lse[column * STEP]);
        }
}

// Replace dp with ds = p (keep dp - delta). `keep` is the dropout factor, 1/(1 - rate). The caller
// has already set dp to 0 where dropout drops. Keys are in rows, queries in columns. The delta of
// column i is delta[i * STEP].
template <int STEP = 1, int N>
DEV void times_slope_columns(float (&dp)[N][4], const float (&p)[N][4], const float *delta,
                             float keep)
{
    int t = threadIdx.x % 4;
    DEV_UNROLL_FOR (int n = 0; n < N; n++)
        DEV_UNROLL_FOR (int e = 0; e < 4; e++)
            dp[n][e] = p[n][e] * (dp[n][e] * keep - delta[(n * 8 + 2 * t + (e & 1)) * STEP]);
}

// lse (in log2 units) and delta of the two queries whose scores a lane holds: rows g and g + 8 of
// the warp's 16 rows, where g = lane/4.
struct RowStats {
    float lse[2], delta[2];

    template <class T> DEV RowStats(const Heads<T> &a, const Head &h, int query)
    {
        DEV_UNROLL_FOR (int half = 0; half < 2; half++) {
            int row = query + threadIdx.x % 32 / 4 + half * 8;
            lse[half] = row < a.length ? a.lse[h.row + row] * LOG2E : INFINITY;
            delta[half] = row < a.length ? a.delta[h.row + row] : 0;
        }
    }
};

// soften_rows replaces scores with probabilities, and times_slope_rows replaces dp with ds = p
// (keep dp - delta), both for queries in rows and keys in columns. `lse` (in log2 units) and
// `delta` have two elements, for the rows g and g + 8 that the lane holds.
template <int N>
DEV void soften_rows(float (&s)[N][4], const float (&lse)[2], float scale_log2, int query, int key)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    DEV_UNROLL_FOR (int n = 0; n < N; n++)
        DEV_UNROLL_FOR (int e = 0; e < 4; e++) {
            int column = key + n * 8 + 2 * t + (e & 1), row = query + g + (e >> 1) * 8;
            s[n][e] = column > row ? 0 : dev::exp2_fast(s[n][e] * scale_log2 - lse[e >> 1]);
        }
}

template <int N>
DEV void times_slope_rows(float (&dp)[N][4], const float (&p)[N][4], const float (&delta)[2],
                          float keep)
{
    DEV_UNROLL_FOR (int n = 0; n < N; n++)
        DEV_UNROLL_FOR (int e = 0; e < 4; e++)
            dp[n][e] = p[n][e] * (dp[n][e] * keep - delta[e >> 1]);
}

// Return the factor by which a query's dq is multiplied: the scale, or 0 if the query sees only its
// own key. In the latter case, the probability of that key is 1 for any score, so the exact
// gradient of the score is 0. The general formula would give a small rounding error instead, and
// AdamW, which divides by the gradient's size, would turn even this error into an update of full
// size. dk_factor does the same for a key: it returns 0 if the only query that sees the key sees no
// other key.
template <class T> DEV float dq_factor(const Heads<T> &a, const Sight<T> &sight, int query)
{
    return sight.first_key(query) == query ? 0 : a.scale;
}

template <class T> DEV float dk_factor(const Heads<T> &a, const Sight<T> &sight, int key)
{
    return sight.after_queries(key) == key + 1 ? dq_factor(a, sight, key) : a.scale;
}

} // namespace sgt
