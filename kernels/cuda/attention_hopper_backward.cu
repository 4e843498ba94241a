// attention_hopper_backward.cu: the gradients of attention for sm_90, in two kernels as attention_backward.cu has them
// (and says what they compute): one keeps keys and walks over queries, the other keeps queries and walks over keys.
// Every sum is one consumer's alone: no atomics, the same bits each time. The price is seven products for five, as both
// compute scores. A sum of dq through memory would need an order among the blocks of a head, which then wait.
#include "attention_hopper.cuh"
#include "attention_slopes.cuh"

using namespace sgt;

// ---- dk and dv ----

enum { QUERIES = 64 }; // of a walked tile

// A block's shared memory: own keys and values, and a ring of tiles of q, of dout, and lse (in log2) and delta.
template <class T, int D> struct KeysShared {
    static constexpr int OWN_TILE = WIDE_TILE<D, BOTH>, TILE_N = WIDE_TILE<D, QUERIES>;
    static constexpr size_t BYTES = BARRIERS + 2 * (OWN_TILE + STAGES * TILE_N) * sizeof(T) +
                                    STAGES * 2 * QUERIES * sizeof(float);
    uint64_t *own;
    Ring *ring;
    T *keys, *values, *q_tiles, *dout_tiles;
    float *all_stats;

    DEV KeysShared()
    {
        unsigned char *shared = dev::dyn_smem();
        own = (uint64_t *)shared;
        ring = (Ring *)(own + 1);
        keys = (T *)(shared + BARRIERS);
        values = keys + OWN_TILE;
        q_tiles = values + OWN_TILE;
        dout_tiles = q_tiles + STAGES * TILE_N;
        all_stats = (float *)(dout_tiles + STAGES * TILE_N);
    }
    DEV T *q(int i) const { return q_tiles + i % STAGES * TILE_N; }
    DEV T *dout(int i) const { return dout_tiles + i % STAGES * TILE_N; }
    DEV float *stats(int i) const { return all_stats + i % STAGES * 2 * QUERIES; }
};

// By one warp: its lanes bring lse and delta, one of them has TMA bring the rest. Past the last query lse is infinite:
// p is 0 there.
template <class T, int D>
DEV void produce_queries(const KeysShared<T, D> &m, const Heads<T> &a, const dev::TensorMap *qkv,
                         const dev::TensorMap *dout, int first, int end)
{
    Columns c(a, blockIdx.x);
    Head h(a, blockIdx.x);
    int lane = threadIdx.x % 32;
    if (lane == 0) {
        dev::mbar_arrive_expect(m.own, 2 * m.OWN_TILE * (int)sizeof(T));
        load_rows<D, BOTH>(m.keys, qkv, m.own, c.plain + c.width, first, c.plane);
        load_rows<D, BOTH>(m.values, qkv, m.own, c.plain + 2 * c.width, first, c.plane);
    }
    for (int i = 0, query = first; query < end; i++, query += QUERIES) {
        float lse[QUERIES / 32], delta[QUERIES / 32]; // read before the stage is empty
        DEV_UNROLL
        for (int j = 0; j < QUERIES / 32; j++) {
            int row = query + lane + 32 * j;
            lse[j] = row < a.length ? a.lse[h.row + row] * LOG2E : INFINITY;
            delta[j] = row < a.length ? a.delta[h.row + row] : 0;
        }
        m.ring->wait_empty(i);
        DEV_UNROLL
        for (int j = 0; j < QUERIES / 32; j++) {
            m.stats(i)[lane + 32 * j] = lse[j];
            m.stats(i)[QUERIES + lane + 32 * j] = delta[j];
        }
        dev::warp_sync(); // every lane's numbers are there before lane 0 arrives
        if (lane) continue;
        dev::mbar_arrive_expect(m.ring->bar(i), 2 * m.TILE_N * (int)sizeof(T));
        load_rows<D, QUERIES>(m.q(i), qkv, m.ring->bar(i), c.plain, query, c.plane);
        load_rows<D, QUERIES>(m.dout(i), dout, m.ring->bar(i), c.plain, query, c.plane);
    }
}

template <class T, int D, bool DROP> struct KeySums {
    static constexpr int N = QUERIES / 8;
    float dk[D / 8][4], dv[D / 8][4];
    uint32_t p[N / 2][4], ds[N / 2][4]; // left operands of the sums
};

// A tile of queries, some of which see the group's keys. The first sum's product runs while the second's operand is
// computed; none is under way at the end, for ptxas to leave products that a loop carries on as they are.
template <class T, int D, bool DROP>
DEV void add_query_tile(KeySums<T, D, DROP> &sums, const KeysShared<T, D> &m, const Heads<T> &a, const Kept<DROP> &kept,
                     const Sight<T> &sight, int row, int key, int query, int i)
{
    constexpr int N = QUERIES / 8;
    float s[N][4], dp[N][4];
    Draws<DROP, N> draws;
    m.ring->wait_full(i);
    dev::wgmma_fence();
    start_scores<T, D>(s, m.keys, row, m.q(i));
    start_scores<T, D>(dp, m.values, row, m.dout(i));
    draws.by_columns(kept, key, query);
    dev::wgmma_wait<1>(s);
    if (a.end && query + QUERIES > sight.after_queries(key)) mask_ended(s, sight, key, query);
    soften_columns(s, m.stats(i), a.scale_log2, key, query);
    if constexpr (DROP) {
        float kept_p[N][4];
        DEV_UNROLL
        for (int n = 0; n < N; n++)
            DEV_UNROLL
            for (int e = 0; e < 4; e++) kept_p[n][e] = s[n][e];
        draws.drop(kept_p);
        pack_rows<T>(sums.p, kept_p);
    } else {
        pack_rows<T>(sums.p, s);
    }
    dev::wgmma_fence(sums.p, sums.dv);
    start_sums<T, D>(sums.dv, sums.p, m.dout(i));
    dev::wgmma_wait<1>(dp);
    draws.drop(dp);
    times_slope_columns(dp, s, m.stats(i) + QUERIES, kept.keep);
    pack_rows<T>(sums.ds, dp);
    dev::wgmma_fence(sums.ds, sums.dk);
    start_sums<T, D>(sums.dk, sums.ds, m.q(i));
    dev::wgmma_wait<0>(sums.dk, sums.dv, sums.p, sums.ds);
    m.ring->release(i);
}

template <class T, int D, bool DROP>
DEV void consume_queries(const KeysShared<T, D> &m, const Heads<T> &a, const Sight<T> &sight, int first, int end)
{
    Kept<DROP> kept(a, blockIdx.x);
    Head h(a, blockIdx.x);
    KeySums<T, D, DROP> sums;
    int row = threadIdx.x / 128 * MINE, key = first + threadIdx.x / 32 * 16;
    int seen = sight.after_queries(first + row + MINE - 1), i = 0, query = first; // queries that see the group's keys
    DEV_UNROLL
    for (int n = 0; n < D / 8; n++)
        DEV_UNROLL
        for (int e = 0; e < 4; e++) sums.dk[n][e] = sums.dv[n][e] = 0;
    dev::mbar_wait(m.own, 0);
    for (; query < first + row && query < end; i++, query += QUERIES) m.ring->skip(i);
    for (; query < seen; i++, query += QUERIES) add_query_tile(sums, m, a, kept, sight, row, key, query, i);
    for (; query < end; i++, query += QUERIES) m.ring->skip(i);
    T *to = a.dqkv + h.packed + (size_t)a.heads * a.D;
    store_rows<T, D>(to, h.packed_ld, key, a.length, D, sums.dk, a.scale, a.scale);
    store_rows<T, D>(to + (size_t)a.heads * a.D, h.packed_ld, key, a.length, D, sums.dv, kept.keep, kept.keep);
}

template <class T, int D, bool DROP>
__global__ void __launch_bounds__(HOPPER_THREADS, 1)
    keys_hopper_kernel(Heads<T> a, const __grid_constant__ dev::TensorMap qkv,
                       const __grid_constant__ dev::TensorMap dout)
{
    KeysShared<T, D> m;
    Sight<T> sight(a, blockIdx.x);
    int first = blockIdx.y * BOTH, end = sight.after_queries(first + BOTH - 1); // queries that see any of these keys
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

// Keys of a walked tile: fewer where a row's sums take up the registers.
template <int D> constexpr int WALKED_KEYS = D == 64 ? 128 : 64;

template <class T, int D> struct QueriesShared {
    static constexpr int OWN_TILE = WIDE_TILE<D, BOTH>, TILE_N = WIDE_TILE<D, WALKED_KEYS<D>>;
    static constexpr size_t BYTES = BARRIERS + 2 * (OWN_TILE + STAGES * TILE_N) * sizeof(T);
    uint64_t *own;
    Ring *ring;
    T *q, *dout, *key_tiles, *value_tiles;

    DEV QueriesShared()
    {
        unsigned char *shared = dev::dyn_smem();
        own = (uint64_t *)shared;
        ring = (Ring *)(own + 1);
        q = (T *)(shared + BARRIERS);
        dout = q + OWN_TILE;
        key_tiles = dout + OWN_TILE;
        value_tiles = key_tiles + STAGES * TILE_N;
    }
    DEV T *keys(int i) const { return key_tiles + i % STAGES * TILE_N; }
    DEV T *values(int i) const { return value_tiles + i % STAGES * TILE_N; }
};

template <class T, int D>
DEV void produce_keys(const QueriesShared<T, D> &m, const Columns &c, const dev::TensorMap *qkv,
                      const dev::TensorMap *dout, int first, int begin, int end)
{
    dev::mbar_arrive_expect(m.own, 2 * m.OWN_TILE * (int)sizeof(T));
    load_rows<D, BOTH>(m.q, qkv, m.own, c.plain, first, c.plane);
    load_rows<D, BOTH>(m.dout, dout, m.own, c.plain, first, c.plane);
    for (int i = 0, key = begin; key < end; i++, key += WALKED_KEYS<D>) {
        m.ring->wait_empty(i);
        dev::mbar_arrive_expect(m.ring->bar(i), 2 * m.TILE_N * (int)sizeof(T));
        load_rows<D, WALKED_KEYS<D>>(m.keys(i), qkv, m.ring->bar(i), c.plain + c.width, key, c.plane);
        load_rows<D, WALKED_KEYS<D>>(m.values(i), qkv, m.ring->bar(i), c.plain + 2 * c.width, key, c.plane);
    }
}

// lse in log2 and delta of rows g and g + 8.
struct RowStats {
    float lse[2], delta[2];

    template <class T> DEV RowStats(const Heads<T> &a, const Head &h, int query)
    {
        DEV_UNROLL
        for (int half = 0; half < 2; half++) {
            int row = query + threadIdx.x % 32 / 4 + half * 8;
            lse[half] = row < a.length ? a.lse[h.row + row] * LOG2E : INFINITY;
            delta[half] = row < a.length ? a.delta[h.row + row] : 0;
        }
    }
};

template <class T, int D, bool DROP>
DEV void consume_keys(const QueriesShared<T, D> &m, const Heads<T> &a, const Sight<T> &sight, int first, int begin,
                      int end)
{
    constexpr int N = WALKED_KEYS<D> / 8;
    Kept<DROP> kept(a, blockIdx.x);
    Head h(a, blockIdx.x);
    int row = threadIdx.x / 128 * MINE, query = first + threadIdx.x / 32 * 16, i = 0, key = begin;
    int from = sight.first_key(first + row) / WALKED_KEYS<D> * WALKED_KEYS<D>; // keys that the group's queries see
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
        start_scores<T, D>(s, m.q, row, m.keys(i));
        start_scores<T, D>(dp, m.dout, row, m.values(i));
        draws.by_rows(kept, query, key);
        dev::wgmma_wait<1>(s);
        if (key < sight.first_key(query + 15)) mask_earlier(s, sight, query, key);
        soften_rows(s, r.lse, a.scale_log2, query, key);
        dev::wgmma_wait<0>(dp);
        draws.drop(dp);
        times_slope_rows(dp, s, r.delta, kept.keep);
        pack_rows<T>(ds, dp);
        dev::wgmma_fence(ds, dq);
        start_sums<T, D>(dq, ds, m.keys(i));
        dev::wgmma_wait<0>(dq, ds);
        m.ring->release(i);
    }
    for (; key < end; i++, key += WALKED_KEYS<D>) m.ring->skip(i);
    store_rows<T, D>(a.dqkv + h.packed, h.packed_ld, query, a.length, D, dq, a.scale, a.scale);
}

template <class T, int D, bool DROP>
__global__ void __launch_bounds__(HOPPER_THREADS, 1)
    queries_hopper_kernel(Heads<T> a, const __grid_constant__ dev::TensorMap qkv,
                          const __grid_constant__ dev::TensorMap dout)
{
    QueriesShared<T, D> m;
    Sight<T> sight(a, blockIdx.x);
    int first = (gridDim.y - 1 - blockIdx.y) * BOTH; // the longest walks first
    int begin = sight.first_key(first) / WALKED_KEYS<D> * WALKED_KEYS<D>;
    int end = first + BOTH < a.length ? first + BOTH : a.length;
    make_barriers(m.own, m.ring);
    if (threadIdx.x >= CONSUMERS * 128) {
        dev::regs_dec<PRODUCER_REGISTERS>();
        if (threadIdx.x == CONSUMERS * 128) produce_keys(m, Columns(a, blockIdx.x), &qkv, &dout, first, begin, end);
        return;
    }
    dev::regs_inc<CONSUMER_REGISTERS>();
    consume_keys<T, D, DROP>(m, a, sight, first, begin, end);
}

void sgt_cuda_attention_hopper_backward(sgt_cuda_stream s, sgt_cuda_type type, void *dqkv, float *delta,
                                        const void *dout, const void *out, const float *lse, const void *qkv, size_t B,
                                        size_t T, size_t H, size_t D, float scale, const sgt_cuda_dropout *drop,
                                        const sgt_cuda_documents *documents)
{
    if (B * T * H == 0) return;
    by_wide_head(type, D, drop, [&](auto zero, auto width, auto dropping) {
        using N = decltype(zero);
        Heads<N> a = heads_of<N>(qkv, out, lse, T, H, D, scale, drop, documents);
        a.delta = delta, a.dout = (const N *)dout, a.dqkv = (N *)dqkv;
        if (T == 1) a.scale = 0; // a lone key's probability is 1: dq and dk are exactly 0, not rounding errors
        dev::TensorMap packed, plain;
        if (!map_rows(&packed, a.qkv, B, T, 3 * H * D) || !map_rows(&plain, a.dout, B, T, H * D)) return;
        size_t rows = B * T * H;
        dim3 grid((unsigned)(B * H), blocks_for(T, BOTH)), block(HOPPER_THREADS);
        DEV_LAUNCH(delta_kernel<N>, dim3(blocks_for(rows, ATTENTION_THREADS / 32)), dim3(ATTENTION_THREADS), 0, s, a,
                   rows);
        DEV_LAUNCH((keys_hopper_kernel<N, width, dropping>), grid, block, (KeysShared<N, width>::BYTES), s, a, packed,
                   plain);
        DEV_LAUNCH((queries_hopper_kernel<N, width, dropping>), grid, block, (QueriesShared<N, width>::BYTES), s, a,
                   packed, plain);
    });
}
