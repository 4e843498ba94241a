// attention_hopper_backward.cu: the gradients of attention for sm_90. attention_backward.cu has the
// formulas. There are two kernels. The first keeps keys and values, loops over queries, and
// computes dk and dv. The second keeps queries, loops over keys and values, and computes dq. Each
// result is added up by a single consumer (a group of 128 threads) without atomics, so the results
// have the same bits each time. In return, both kernels must compute the scores, so together they
// do seven matrix products. One kernel for all gradients would do five. But its sums of dq would go
// through memory, and the blocks of a head would have to wait for each other to add in a fixed
// order.
#include "kernels/cuda/attention_hopper.cuh"
#include "kernels/cuda/attention_slopes.cuh"

using namespace sgt;

// Layout of a block's shared memory, for both kernels. A block keeps two tiles of its own and loops
// over pairs of other tiles, which arrive in a ring of STAGES buffers. In one kernel, the block
// keeps keys and values and loops over q and dout. In the other, it keeps q and dout and loops over
// keys and values. own_s and ring_s are the tiles of q and k, whose product is the scores; own_dp
// and ring_dp are those of dout and v, whose product is dp. Each pair in the ring has ROWS rows per
// tile and STATS floats of statistics.
template <class T, int D, int ROWS, int STATS> struct Tiles {
    static constexpr int OWN_TILE = WIDE_TILE<D, BOTH>, TILE_N = WIDE_TILE<D, ROWS>;
    static constexpr size_t BYTES =
        BARRIERS + 2 * (OWN_TILE + STAGES * TILE_N) * sizeof(T) + STAGES * STATS * sizeof(float);
    uint64_t *own;
    Ring *ring;
    T *own_s, *own_dp, *ring_s, *ring_dp;
    float *ring_stats;

    DEV Tiles()
    {
        unsigned char *shared = dev::dyn_smem();
        own = (uint64_t *)shared;
        ring = (Ring *)(own + 1);
        own_s = (T *)(shared + BARRIERS);
        own_dp = own_s + OWN_TILE;
        ring_s = own_dp + OWN_TILE;
        ring_dp = ring_s + STAGES * TILE_N;
        ring_stats = (float *)(ring_dp + STAGES * TILE_N);
    }
    DEV T *walked_s(int i) const { return ring_s + i % STAGES * TILE_N; }
    DEV T *walked_dp(int i) const { return ring_dp + i % STAGES * TILE_N; }
    DEV float *stats(int i) const { return ring_stats + i % STAGES * STATS; }
    DEV void expect_own() const { dev::mbar_arrive_expect(own, 2 * OWN_TILE * (int)sizeof(T)); }
    DEV void expect_walked(int i) const
    {
        dev::mbar_arrive_expect(ring->bar(i), 2 * TILE_N * (int)sizeof(T));
    }
};

// ---- dk and dv ----

enum { QUERIES = 64 }; // number of rows of a tile in the ring

// The statistics in one stage (buffer) of the ring: first the lse (in log2 units) of the stage's
// QUERIES queries, then the delta of these queries.
template <class T, int D> using KeysShared = Tiles<T, D, QUERIES, 2 * QUERIES>;

// Copy tiles of q and dout into the ring, with the lse and delta of their queries. One warp runs
// this function: all lanes copy lse and delta, and lane 0 starts the TMA copies of q and dout. For
// rows past the last query, set lse to infinity, so that their probabilities exp2(s - lse) are 0.
template <class T, int D>
DEV void produce_queries(const KeysShared<T, D> &m, const Heads<T> &a, const dev::TensorMap *qkv,
                         const dev::TensorMap *dout, int first, int end)
{
    Columns c(a, blockIdx.x);
    Head h(a, blockIdx.x);
    int lane = threadIdx.x % 32;
    if (lane == 0) {
        m.expect_own();
        load_rows<D, BOTH>(m.own_s, qkv, m.own, c.plain + c.width, first, c.plane);
        load_rows<D, BOTH>(m.own_dp, qkv, m.own, c.plain + 2 * c.width, first, c.plane);
    }
    for (int i = 0, query = first; query < end; i++, query += QUERIES) {
        // lse and delta are loaded before the wait for a free stage, so that loading and waiting
        // overlap
        float lse[QUERIES / 32], delta[QUERIES / 32];
        DEV_UNROLL_FOR (int j = 0; j < QUERIES / 32; j++) {
            int row = query + lane + 32 * j;
            lse[j] = row < a.length ? a.lse[h.row + row] * LOG2E : INFINITY;
            delta[j] = row < a.length ? a.delta[h.row + row] : 0;
        }
        m.ring->wait_empty(i);
        DEV_UNROLL_FOR (int j = 0; j < QUERIES / 32; j++) {
            m.stats(i)[lane + 32 * j] = lse[j];
            m.stats(i)[QUERIES + lane + 32 * j] = delta[j];
        }
        dev::warp_sync(); // every lane's numbers are written before lane 0 arrives at the barrier
        if (lane) continue;
        m.expect_walked(i);
        load_rows<D, QUERIES>(m.walked_s(i), qkv, m.ring->bar(i), c.plain, query, c.plane);
        load_rows<D, QUERIES>(m.walked_dp(i), dout, m.ring->bar(i), c.plain, query, c.plane);
    }
}

template <class T, int D, bool DROP> struct KeySums {
    static constexpr int N = QUERIES / 8;
    float dk[D / 8][4], dv[D / 8][4];
    uint32_t p[N / 2][4], ds[N / 2][4]; // left operands for dv and dk
};

// Add the contributions of a tile of queries to dk and dv, which belong to the group's keys. At
// least one of the queries must see one of the keys. The tensor cores compute the product for dv
// while the group computes ds, the left operand for dk. All matrix products are complete on return,
// because ptxas would serialize all matrix products that are pending across iterations of a loop.
template <class T, int D, bool DROP>
DEV void add_query_tile(KeySums<T, D, DROP> &sums, const KeysShared<T, D> &m, const Heads<T> &a,
                        const Kept<DROP> &kept, const Sight<T> &sight, int row, int key, int query,
                        int i)
{
    constexpr int N = QUERIES / 8;
    float s[N][4], dp[N][4];
    Draws<DROP, N> draws;
    m.ring->wait_full(i);
    dev::wgmma_fence();
    start_scores<T, D>(s, m.own_s, row, m.walked_s(i));
    start_scores<T, D>(dp, m.own_dp, row, m.walked_dp(i));
    draws.by_columns(kept, key, query);
    dev::wgmma_wait<1>(s);
    if (a.end && query + QUERIES > sight.after_queries(key)) mask_ended(s, sight, key, query);
    soften_columns(s, m.stats(i), a.scale_log2, key, query);
    if constexpr (DROP) {
        float kept_p[N][4];
        DEV_UNROLL_FOR (int n = 0; n < N; n++)
            DEV_UNROLL_FOR (int e = 0; e < 4; e++) kept_p[n][e] = s[n][e];
        draws.drop(kept_p);
        pack_rows<T>(sums.p, kept_p);
    } else {
        pack_rows<T>(sums.p, s);
    }
    dev::wgmma_fence(sums.p, sums.dv);
    start_sums<T, D>(sums.dv, sums.p, m.walked_dp(i));
    dev::wgmma_wait<1>(dp);
    draws.drop(dp);
    times_slope_columns(dp, s, m.stats(i) + QUERIES, kept.keep);
    pack_rows<T>(sums.ds, dp);
    dev::wgmma_fence(sums.ds, sums.dk);
    start_sums<T, D>(sums.dk, sums.ds, m.walked_s(i));
    dev::wgmma_wait<0>(sums.dk, sums.dv, sums.p, sums.ds);
    m.ring->release(i);
}

template <class T, int D, bool DROP>
DEV void consume_queries(const KeysShared<T, D> &m, const Heads<T> &a, const Sight<T> &sight,
                         int first, int end)
{
    Kept<DROP> kept(a, blockIdx.x);
    Head h(a, blockIdx.x);
    KeySums<T, D, DROP> sums;
    int row = threadIdx.x / 128 * MINE, key = first + threadIdx.x / 32 * 16;
    // index of the last query that sees any of the group's keys, plus 1
    int seen = sight.after_queries(first + row + MINE - 1);
    int i = 0, query = first;
    DEV_UNROLL_FOR (int n = 0; n < D / 8; n++)
        DEV_UNROLL_FOR (int e = 0; e < 4; e++) sums.dk[n][e] = sums.dv[n][e] = 0;
    dev::mbar_wait(m.own, 0);
    for (; query < first + row && query < end; i++, query += QUERIES) m.ring->skip(i);
    for (; query < seen; i++, query += QUERIES)
        add_query_tile(sums, m, a, kept, sight, row, key, query, i);
    for (; query < end; i++, query += QUERIES) m.ring->skip(i);
    T *to = a.dqkv + h.packed + (size_t)a.heads * a.D;
    int own_key = key + threadIdx.x % 32 / 4; // and own_key + 8
    store_rows<T, D>(to, h.packed_ld, key, a.length, D, sums.dk, dk_factor(a, sight, own_key),
                     dk_factor(a, sight, own_key + 8));
    store_rows<T, D>(to + (size_t)a.heads * a.D, h.packed_ld, key, a.length, D, sums.dv, kept.keep,
                     kept.keep);
}

template <class T, int D, bool DROP>
__global__ void __launch_bounds__(HOPPER_THREADS, 1)
    keys_hopper_kernel(Heads<T> a, const __grid_constant__ dev::TensorMap qkv,
                       const __grid_constant__ dev::TensorMap dout)
{
    dev::after_previous();
    KeysShared<T, D> m;
    Sight<T> sight(a, blockIdx.x);
    // index of the last query that sees any of the block's keys, plus 1
    int first = blockIdx.y * BOTH, end = sight.after_queries(first + BOTH - 1);
    make_barriers(m.own, m.ring);
    if (threadIdx.x >= CONSUMERS * 128) {
        dev::regs_dec<PRODUCER_REGISTERS>();
        if (threadIdx.x < CONSUMERS * 128 + 32) produce_queries(m, a, &qkv, &dout, first, end);
        return;
    }
    dev::regs_inc<CONSUMER_REGISTERS>();
    consume_queries<T, D, DROP>(m, a, sight, first, end);
}

// ---- dq ----

// Number of rows of a tile in the ring. This number is smaller for D = 128 than for D = 64, because
// the sums for wider rows need more registers.
template <int D> constexpr int WALKED_KEYS = D == 64 ? 128 : 64;

template <class T, int D> using QueriesShared = Tiles<T, D, WALKED_KEYS<D>, 0>;

template <class T, int D>
DEV void produce_keys(const QueriesShared<T, D> &m, const Columns &c, const dev::TensorMap *qkv,
                      const dev::TensorMap *dout, int first, int begin, int end)
{
    m.expect_own();
    load_rows<D, BOTH>(m.own_s, qkv, m.own, c.plain, first, c.plane);
    load_rows<D, BOTH>(m.own_dp, dout, m.own, c.plain, first, c.plane);
    for (int i = 0, key = begin; key < end; i++, key += WALKED_KEYS<D>) {
        m.ring->wait_empty(i);
        m.expect_walked(i);
        load_rows<D, WALKED_KEYS<D>>(m.walked_s(i), qkv, m.ring->bar(i), c.plain + c.width, key,
                                     c.plane);
        load_rows<D, WALKED_KEYS<D>>(m.walked_dp(i), qkv, m.ring->bar(i), c.plain + 2 * c.width,
                                     key, c.plane);
    }
}

template <class T, int D, bool DROP>
DEV void consume_keys(const QueriesShared<T, D> &m, const Heads<T> &a, const Sight<T> &sight,
                      int first, int begin, int end)
{
    constexpr int N = WALKED_KEYS<D> / 8;
    Kept<DROP> kept(a, blockIdx.x);
    Head h(a, blockIdx.x);
    int row = threadIdx.x / 128 * MINE, query = first + threadIdx.x / 32 * 16, i = 0, key = begin;
    // first key that any of the group's queries sees, rounded down to the start of a tile
    int from = sight.first_key(first + row) / WALKED_KEYS<D> * WALKED_KEYS<D>;
    int to = first + row + MINE < end ? first + row + MINE : end;
    RowStats r(a, h, query);
    float dq[D / 8][4] = {};
    dev::mbar_wait(m.own, 0);
    for (; key < from && key < end; i++, key += WALKED_KEYS<D>) m.ring->skip(i);
    for (; key < to; i++, key += WALKED_KEYS<D>) {
        float s[N][4], dp[N][4];
        uint32_t ds[N / 2][4];
        Draws<DROP, N> draws;
        m.ring->wait_full(i);
        dev::wgmma_fence();
        start_scores<T, D>(s, m.own_s, row, m.walked_s(i));
        start_scores<T, D>(dp, m.own_dp, row, m.walked_dp(i));
        draws.by_rows(kept, query, key);
        dev::wgmma_wait<1>(s);
        if (key < sight.first_key(query + 15)) mask_earlier(s, sight, query, key);
        soften_rows(s, r.lse, a.scale_log2, query, key);
        dev::wgmma_wait<0>(dp);
        draws.drop(dp);
        times_slope_rows(dp, s, r.delta, kept.keep);
        pack_rows<T>(ds, dp);
        dev::wgmma_fence(ds, dq);
        start_sums<T, D>(dq, ds, m.walked_s(i));
        dev::wgmma_wait<0>(dq, ds);
        m.ring->release(i);
    }
    for (; key < end; i++, key += WALKED_KEYS<D>) m.ring->skip(i);
    int own_query = query + threadIdx.x % 32 / 4; // and own_query + 8
    store_rows<T, D>(a.dqkv + h.packed, h.packed_ld, query, a.length, D, dq,
                     dq_factor(a, sight, own_query), dq_factor(a, sight, own_query + 8));
}

template <class T, int D, bool DROP>
__global__ void __launch_bounds__(HOPPER_THREADS, 1)
    queries_hopper_kernel(Heads<T> a, const __grid_constant__ dev::TensorMap qkv,
                          const __grid_constant__ dev::TensorMap dout)
{
    dev::after_previous();
    QueriesShared<T, D> m;
    Sight<T> sight(a, blockIdx.x);
    int first = (gridDim.y - 1 - blockIdx.y) * BOTH; // longest walks first
    int begin = sight.first_key(first) / WALKED_KEYS<D> * WALKED_KEYS<D>;
    int end = first + BOTH < a.length ? first + BOTH : a.length;
    make_barriers(m.own, m.ring);
    if (threadIdx.x >= CONSUMERS * 128) {
        dev::regs_dec<PRODUCER_REGISTERS>();
        if (threadIdx.x == CONSUMERS * 128)
            produce_keys(m, Columns(a, blockIdx.x), &qkv, &dout, first, begin, end);
        return;
    }
    dev::regs_inc<CONSUMER_REGISTERS>();
    consume_keys<T, D, DROP>(m, a, sight, first, begin, end);
}

void sgt_cuda_attention_hopper_backward(sgt_cuda_stream s, const sgt_cuda_heads *a, void *dqkv,
                                        float *delta, const void *dout, const void *out,
                                        const float *lse, const void *qkv)
{
    if (a->B * a->T * a->H == 0) return;
    by_wide_head(*a, [&](auto zero, auto width, auto dropping) {
        using N = decltype(zero);
        Heads<N> h = heads_of<N>(*a, qkv, out, lse, dqkv, delta, dout);
        dev::TensorMap packed, plain;
        if (!map_rows(&packed, h.qkv, *a, 3) || !map_rows(&plain, h.dout, *a, 1)) return;
        dim3 grid((unsigned)(a->B * a->H), blocks_for(a->T, BOTH)), block(HOPPER_THREADS);
        launch_delta(s, *a, h);
        DEV_LAUNCH((keys_hopper_kernel<N, width, dropping>), grid, block,
                   (KeysShared<N, width>::BYTES), s, h, packed, plain);
        DEV_LAUNCH((queries_hopper_kernel<N, width, dropping>), grid, block,
                   (QueriesShared<N, width>::BYTES), s, h, packed, plain);
    });
}
