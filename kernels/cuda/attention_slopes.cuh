// attention_slopes.cuh: the element-wise steps of the backward pass, from scores to the gradients
// of scores, for attention_backward.cu and attention_hopper_backward.cu. Include attention.cuh
// first; it describes the layout of accumulators.
#pragma once

namespace sgt
{

// delta (B, H, T) = the sum of dout * out over a head's columns. A warp computes one sum.
template <class T>
__global__ void __launch_bounds__(ATTENTION_THREADS) delta_kernel(Heads<T> a, size_t rows)
{
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

// For keys in rows and queries in columns: set the scores of queries in later documents to
// -infinity.
template <int N, class T>
DEV void mask_ended(float (&s)[N][4], const Sight<T> &sight, int key, int query)
{
    mask_columns<false>(s, [&](int row) { return sight.after_queries(key + row) - query; });
}

// For keys in rows and queries in columns: replace scores by probabilities p. Column i's lse (in
// log2) is at lse[i * STEP].
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

// For keys in rows and queries in columns: replace dp by ds = p (keep dp - delta). Column i's delta
// is at delta[i * STEP]; `keep` is the dropout factor of kept probabilities.
template <int STEP = 1, int N>
DEV void times_slope_columns(float (&dp)[N][4], const float (&p)[N][4], const float *delta,
                             float keep)
{
    int t = threadIdx.x % 4;
    DEV_UNROLL_FOR (int n = 0; n < N; n++)
        DEV_UNROLL_FOR (int e = 0; e < 4; e++)
            dp[n][e] = p[n][e] * (dp[n][e] * keep - delta[(n * 8 + 2 * t + (e & 1)) * STEP]);
}

// soften_rows and times_slope_rows do the same for queries in rows and keys in columns. lse (in
// log2) and delta are those of the lane's two rows, g and g + 8.
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

// A query that sees only its own key has probability 1 for any score, so the score's gradient is
// exactly 0. The formula would leave a rounding error, which AdamW would divide by its own size. So
// dq and dk are multiplied by these factors, which are 0 if all of their terms are such gradients,
// and otherwise the scale.
template <class T> DEV float dq_factor(const Heads<T> &a, const Sight<T> &sight, int query)
{
    return sight.first_key(query) == query ? 0 : a.scale;
}

template <class T> DEV float dk_factor(const Heads<T> &a, const Sight<T> &sight, int key)
{
    return sight.after_queries(key) == key + 1 ? dq_factor(a, sight, key) : a.scale;
}

} // namespace sgt
