// attention_backward.cu: the backward pass of attention.cu, with the same tiles. Let p_ij =
// exp(scale q_i.k_j - lse_i), let delta_i = dout_i.out_i, and let f_ij be the dropout factors.
// Then:
//   dv_j = sum_i f_ij p_ij dout_i          ds_ij = p_ij (f_ij dout_i.v_j - delta_i)
//   dq_i = scale sum_j ds_ij k_j           dk_j = scale sum_i ds_ij q_i
// delta_i equals sum_j p_ij (f_ij dout_i.v_j), because out_i is the sum of f_ij p_ij v_j.
//
// There are two kernels. In the first, a block keeps a tile of keys and loops over the queries
// after these keys. In the second, a block keeps a tile of queries and loops over the keys before
// these queries. Neither loop goes beyond the documents of the tile that the block keeps. Both
// kernels compute the scores and dp = dout.v, so together they do seven matrix products instead of
// five. In return, each sum is computed by one warp without atomics, so the results have the same
// bits each time. (A single kernel with five matrix products would add to dq in global memory, in
// float32, after each tile: 32 KiB of traffic for each MFLOP saved. And one block would have to
// process all keys of a head, so that the additions have a fixed order.) In both kernels, the rows
// that a block keeps are the rows of p, so that p's accumulators can be used directly as the left
// operand of the next matrix product.
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/attention_slopes.cuh"

using namespace sgt;

// Number of rows in a tile that a kernel loops over. It is 64 for 16-bit types and heads of up to
// 64 columns. For wider heads it is 32, because their sums take more registers. For float32 it is
// half of that for a 16-bit type, because a row takes twice as much shared memory.
template <class T, int DP> constexpr int WALKED = (DP <= 64 ? 64 : 32) / (int)(sizeof(T) / 2);

// Layout in shared memory of the lse and delta of a tile of queries. For 16-bit types, lse and
// delta come after all tiles. Tiles of float32 can fill the shared memory, so for float32, lse and
// delta are stored in the unused bytes after each row of q. In both cases, stats[i * STEP] is the
// lse of query i and stats[i * STEP + DELTA] its delta. Shared memory holds two tiles of queries,
// one in use while the other is being filled. The statistics of the second tile begin TURN floats
// after those of the first.
template <class T, int DP> struct Stats {
    static constexpr bool BETWEEN = sizeof(T) == 4;
    static constexpr int N = WALKED<T, DP>, STEP = BETWEEN ? PITCH<T, DP> : 1,
                         DELTA = BETWEEN ? 1 : N;
    static constexpr int TURN = BETWEEN ? TILE<T, DP, N> : 2 * N,
                         BYTES = BETWEEN ? 0 : 4 * N * (int)sizeof(float);
};

// ---- dk and dv ----

// Start copying a tile of queries: q and dout, and each query's lse (in log2 units) and delta. For
// rows past the last query, set lse to infinity, so that their probabilities exp2(s - lse) are 0.
template <class T, int DP>
DEV void start_queries(const Heads<T> &a, const Head &h, T *q, T *dout, float *stats, int query)
{
    constexpr int N = WALKED<T, DP>;
    start_tile<T, DP, N>(q, a.qkv + h.packed + query * h.packed_ld, h.packed_ld, a.length - query,
                         a.D);
    start_tile<T, DP, N>(dout, a.dout + h.plain + query * h.plain_ld, h.plain_ld, a.length - query,
                         a.D);
    int i = threadIdx.x;
    if (i >= N) return;
    bool there = query + i < a.length;
    stats += i * Stats<T, DP>::STEP;
    stats[0] = there ? a.lse[h.row + query + i] * LOG2E : INFINITY;
    stats[Stats<T, DP>::DELTA] = there ? a.delta[h.row + query + i] : 0;
}

// Add the contributions of a tile of queries to dk and dv, which belong to the warp's 16 keys. The
// probabilities p and the products dp = dout.v stay in registers.
template <class T, int DP, bool DROP>
DEV void add_queries(float (&dk)[1][DP / 8][4], float (&dv)[1][DP / 8][4], const Heads<T> &a,
                     const Kept<DROP> &kept, const Sight<T> &sight, const T *keys, const T *values,
                     const T *q, const T *dout, const float *stats, int key, int query)
{
    using At = Stats<T, DP>;
    constexpr int N = WALKED<T, DP>;
    int mine = threadIdx.x / 32 * 16;
    float p[1][N / 8][4], dp[1][N / 8][4];
    KeptTile<N / 8> tile; // draw the dropout mask first, while few registers are in use
    if constexpr (DROP) tile.by_columns(kept, key + mine, query);
    scores<T, DP>(p, keys, mine, q);
    if (a.end && query + N > sight.after_queries(key + mine))
        mask_ended(p[0], sight, key + mine, query);
    soften_columns<At::STEP>(p[0], stats, a.scale_log2, key + mine, query);
    if constexpr (DROP) {
        DEV_UNROLL_FOR (int n = 0; n < N / 8; n++)
            DEV_UNROLL_FOR (int e = 0; e < 4; e++) dp[0][n][e] = p[0][n][e];
        drop_elements(dp[0], tile);
        weigh_rows<T, DP>(dv, dp, dout);
    } else {
        weigh_rows<T, DP>(dv, p, dout);
    }
    scores<T, DP>(dp, values, mine, dout);
    if constexpr (DROP) drop_elements(dp[0], tile);
    times_slope_columns<At::STEP>(dp[0], p[0], stats + At::DELTA, kept.keep);
    weigh_rows<T, DP>(dk, dp, q);
}

// The second launch bound is the minimum number of blocks per multiprocessor. The variant with DP =
// 64 and without dropout needs slightly too many registers for 3 blocks per multiprocessor, so
// request 2 for this variant. For the other variants, 0 leaves the choice to the compiler.
template <class T, int DP, bool DROP>
__global__ void __launch_bounds__(ATTENTION_THREADS, DP == 64 && !DROP ? 2 : 0)
    keys_kernel(Heads<T> a)
{
    dev::after_previous();
    using At = Stats<T, DP>;
    constexpr int N = WALKED<T, DP>, TILE_N = TILE<T, DP, N>;
    Head h(a, blockIdx.x);
    Kept<DROP> kept(a, blockIdx.x);
    Sight<T> sight(a, blockIdx.x);
    size_t width = (size_t)a.heads * a.D;
    int key = blockIdx.y * OWN, mine = threadIdx.x / 32 * 16;
    // index of the last query that sees any of these keys, plus 1
    int end = sight.after_queries(key + OWN - 1);
    T *keys = (T *)dev::dyn_smem(), *values = keys + TILE<T, DP, OWN>,
      *q = values + TILE<T, DP, OWN>;
    T *dout = q + 2 * TILE_N;
    float *stats = (float *)(At::BETWEEN ? q + DP : dout + 2 * TILE_N);
    const T *rows = a.qkv + h.packed + width + key * h.packed_ld;
    start_tile<T, DP, OWN>(keys, rows, h.packed_ld, a.length - key, a.D);
    start_tile<T, DP, OWN>(values, rows + width, h.packed_ld, a.length - key, a.D);
    start_queries<T, DP>(a, h, q, dout, stats, key);
    dev::cp_async_commit();

    float dk[1][DP / 8][4] = {}, dv[1][DP / 8][4] = {};
    int turn = 0;
    for (int query = key; query < end; query += N, turn ^= 1) {
        int now = turn * TILE_N, next = TILE_N - now;
        if (query + N < end)
            start_queries<T, DP>(a, h, q + next, dout + next, stats + (turn ^ 1) * At::TURN,
                                 query + N);
        dev::cp_async_commit();
        dev::cp_async_wait<1>();
        dev::block_sync(); // all copies and statistics of this tile are complete

        // Skip the tile if none of its queries sees any of this warp's keys.
        if (query < sight.after_queries(key + mine + 15))
            add_queries<T, DP>(dk, dv, a, kept, sight, keys, values, q + now, dout + now,
                               stats + turn * At::TURN, key, query);
        // wait until every thread has read this tile, because the next copies overwrite it
        dev::block_sync();
    }
    T *to = a.dqkv + h.packed + width;
    int own_key = key + mine + threadIdx.x % 32 / 4; // and own_key + 8
    store_rows<T, DP>(to, h.packed_ld, key + mine, a.length, a.D, dk[0],
                      dk_factor(a, sight, own_key), dk_factor(a, sight, own_key + 8));
    store_rows<T, DP>(to + width, h.packed_ld, key + mine, a.length, a.D, dv[0], kept.keep,
                      kept.keep);
}

// ---- dq ----

template <class T, int DP, bool DROP> DEV void walk_keys(const Heads<T> &a)
{
    constexpr int N = WALKED<T, DP>, TILE_N = TILE<T, DP, N>;
    Head h(a, blockIdx.x);
    Kept<DROP> kept(a, blockIdx.x);
    Sight<T> sight(a, blockIdx.x);
    int query = (gridDim.y - 1 - blockIdx.y) * OWN, mine = threadIdx.x / 32 * 16;
    // first key that any of the block's queries sees, rounded down to the start of a tile
    int begin = sight.first_key(query) / N * N;
    int end = query + OWN < a.length ? query + OWN : a.length;
    T *q = (T *)dev::dyn_smem(), *dout = q + TILE<T, DP, OWN>, *keys = dout + TILE<T, DP, OWN>;
    T *values = keys + 2 * TILE_N;
    start_tile<T, DP, OWN>(q, a.qkv + h.packed + query * h.packed_ld, h.packed_ld, a.length - query,
                           a.D);
    start_tile<T, DP, OWN>(dout, a.dout + h.plain + query * h.plain_ld, h.plain_ld,
                           a.length - query, a.D);
    int turn = begin / N % 2 * TILE_N;
    start_keys<T, DP, N>(a, h, keys + turn, values + turn, begin);
    dev::cp_async_commit();

    float dq[1][DP / 8][4] = {};
    RowStats r(a, h, query + mine);
    for (int key = begin; key < end; key += N) {
        int now = key / N % 2 * TILE_N, next = TILE_N - now;
        if (key + N < end) start_keys<T, DP, N>(a, h, keys + next, values + next, key + N);
        dev::cp_async_commit();
        dev::cp_async_wait<1>();
        dev::block_sync(); // wait until every thread's copies of this tile are complete
        float s[1][N / 8][4], dp[1][N / 8][4];
        KeptTile<N / 8> tile;
        if constexpr (DROP) tile.by_rows(kept, query + mine, key);
        scores<T, DP>(s, q, mine, keys + now);
        scores<T, DP>(dp, dout, mine, values + now);
        if constexpr (DROP) drop_elements(dp[0], tile);
        if (key < sight.first_key(query + mine + 15)) mask_earlier(s[0], sight, query + mine, key);
        soften_rows(s[0], r.lse, a.scale_log2, query + mine, key);
        times_slope_rows(dp[0], s[0], r.delta, kept.keep);
        weigh_rows<T, DP>(dq, dp, keys + now);
        // wait until every thread has read this tile, because the next copies overwrite it
        dev::block_sync();
    }
    // create a second Sight here, because keeping the first Sight alive until here would take
    // registers
    Sight<T> again(a, blockIdx.x);
    int own_query = query + mine + threadIdx.x % 32 / 4; // and own_query + 8
    store_rows<T, DP>(a.dqkv + h.packed, h.packed_ld, query + mine, a.length, a.D, dq[0],
                      dq_factor(a, again, own_query), dq_factor(a, again, own_query + 8));
}

// For float32, request three blocks per multiprocessor. Without this request, the compiler would
// aim for four blocks and spill registers.
template <class T, int DP>
__global__ void __launch_bounds__(ATTENTION_THREADS, sizeof(T) == 4 ? 3 : 0)
    queries_kernel(Heads<T> a)
{
    dev::after_previous();
    walk_keys<T, DP, false>(a);
}

// Request two blocks per multiprocessor, because the dropout draws need registers. Without this
// request, the compiler would aim for three blocks and spill registers.
template <class T, int DP>
__global__ void __launch_bounds__(ATTENTION_THREADS, 2) queries_dropout_kernel(Heads<T> a)
{
    dev::after_previous();
    walk_keys<T, DP, true>(a);
}

void sgt_cuda_attention_backward(sgt_cuda_stream s, const sgt_cuda_heads *a, void *dqkv,
                                 float *delta, const void *dout, const void *out, const float *lse,
                                 const void *qkv)
{
    if (a->B * a->T * a->H == 0) return;
    by_head(*a, [&](auto zero, auto width, auto dropping) {
        using N = decltype(zero);
        constexpr int W = WALKED<N, width>;
        Heads<N> h = heads_of<N>(*a, qkv, out, lse, dqkv, delta, dout);
        constexpr size_t bytes = (2 * TILE<N, width, OWN> + 4 * TILE<N, width, W>)*sizeof(N);
        constexpr size_t with_stats = bytes + Stats<N, width>::BYTES;
        static_assert(with_stats <= MOST_SHARED, "a block's shared memory");
        dim3 grid((unsigned)(a->B * a->H), blocks_for(a->T, OWN)), block(ATTENTION_THREADS);
        launch_delta(s, *a, h);
        DEV_LAUNCH((keys_kernel<N, width, dropping>), grid, block, with_stats, s, h);
        if constexpr (dropping)
            DEV_LAUNCH((queries_dropout_kernel<N, width>), grid, block, bytes, s, h);
        else DEV_LAUNCH((queries_kernel<N, width>), grid, block, bytes, s, h);
    });
}
