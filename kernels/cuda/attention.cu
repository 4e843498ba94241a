// attention.cu: the forward pass of causal attention, computed tile by tile (FlashAttention-2, Dao
// 2023). A thread block keeps 64 or 128 queries in shared memory and loops over the keys that at
// least one of these queries sees, in tiles of 64 keys (16-bit types) or 32 keys (float32). The
// loop begins at the start of the first query's document and ends at the last query. The next tile
// is copied while the current tile is computed. The softmax uses a running maximum and a running
// sum, so no row of T scores is ever stored.
#include "kernels/cuda/attention.cuh"

using namespace sgt;

// Number of rows in a tile of keys.
template <class T> constexpr int KEY_ROWS = sizeof(T) == 2 ? 64 : 32;

// Number of groups of 16 queries that a warp multiplies by each tile of keys. With one group, a
// warp takes longer to read the tile from shared memory than to multiply by it. So a warp processes
// two groups if it has enough registers, which is so only for heads of at most 64 columns without
// dropout.
template <int DP, bool DROP> constexpr int GROUPS = DP <= 64 && !DROP ? 2 : 1;

// Add a tile of keys and values to the running results of M groups of 16 queries. `out` holds the
// sums of values, weighted by exponentials; `r` holds the maxima and sums of the softmax. Call this
// only if at least one of the warp's queries sees a key of the tile.
template <class T, int DP, int M, bool DROP>
DEV void add_keys(float (&out)[M][DP / 8][4], Running (&r)[M], const Heads<T> &a,
                  const Kept<DROP> &kept, const Sight<T> &sight, const T *own, const T *keys,
                  const T *values, int query, int key)
{
    constexpr int N = KEY_ROWS<T>;
    float s[M][N / 8][4];
    KeptTile<N / 8> tile[M];
    // draw the dropout mask first, while few registers are in use
    DEV_UNROLL_FOR (int m = 0; m < M; m++)
        if constexpr (DROP) tile[m].by_rows(kept, query + 16 * m, key);
    scores<T, DP>(s, own, 0, keys);
    bool masked = key < sight.first_key(query + 16 * M - 1);
    DEV_UNROLL_FOR (int m = 0; m < M; m++) {
        if (key + N > query + 16 * m) mask_later(s[m], query + 16 * m, key);
        if (masked) mask_earlier(s[m], sight, query + 16 * m, key);
        float down[2];
        soften(s[m], r[m], down, a.scale_log2);
        scale_down<DP>(out[m], down);
        // the sum of the softmax includes keys that dropout drops, so drop keys only now, after
        // `soften` has updated the sum
        if constexpr (DROP) drop_elements(s[m], tile[m]);
    }
    weigh_rows<T, DP>(out, s, values);
}

template <class T, int DP, bool DROP>
__global__ void __launch_bounds__(ATTENTION_THREADS, GROUPS<DP, DROP>) attention_kernel(Heads<T> a)
{
    dev::after_previous();
    Head h(a, blockIdx.x);
    Kept<DROP> kept(a, blockIdx.x);
    Sight<T> sight(a, blockIdx.x);
    constexpr int M = GROUPS<DP, DROP>, QUERIES = M * OWN, N = KEY_ROWS<T>, TILE_N = TILE<T, DP, N>;
    // Later queries see more keys, so their blocks take longer. Start these blocks first, so that
    // only short blocks are still running at the end.
    int first = (gridDim.y - 1 - blockIdx.y) * QUERIES, mine = threadIdx.x / 32 * 16 * M,
        query = first + mine;
    // first key that any of the block's queries sees, rounded down to the start of a tile
    int begin = sight.first_key(first) / N * N;
    int end = first + QUERIES < a.length ? first + QUERIES : a.length;
    T *own = (T *)dev::dyn_smem(), *keys = own + TILE<T, DP, QUERIES>, *values = keys + 2 * TILE_N;
    start_tile<T, DP, QUERIES>(own, a.qkv + h.packed + first * h.packed_ld, h.packed_ld,
                               a.length - first, a.D);
    int turn = begin / N % 2 * TILE_N;
    start_keys<T, DP, N>(a, h, keys + turn, values + turn, begin);
    dev::cp_async_commit();

    float out[M][DP / 8][4] = {};
    Running r[M];
    DEV_UNROLL_FOR (int m = 0; m < M; m++) r[m] = {{NONE_YET, NONE_YET}, {0, 0}};
    for (int key = begin; key < end; key += N) {
        int now = key / N % 2 * TILE_N, next = TILE_N - now;
        if (key + N < end) start_keys<T, DP, N>(a, h, keys + next, values + next, key + N);
        dev::cp_async_commit();
        dev::cp_async_wait<1>();
        dev::block_sync(); // every thread's copies of this tile are complete

        // Skip the tile if none of this warp's queries sees any of its keys.
        if (key < query + 16 * M && key + N > sight.first_key(query))
            add_keys<T, DP, M>(out, r, a, kept, sight, own + mine * PITCH<T, DP>, keys + now,
                               values + now, query, key);
        dev::block_sync(); // all have read it before the next copies overwrite this tile
    }
    DEV_UNROLL_FOR (int m = 0; m < M; m++)
        finish<T, DP>(a, h, out[m], r[m], query + 16 * m, kept.keep);
}

int sgt_cuda_attention_serves(size_t D) { return D >= 8 && D <= 128 && D % 8 == 0; }

void sgt_cuda_attention(sgt_cuda_stream s, const sgt_cuda_heads *a, void *out, float *lse,
                        const void *qkv)
{
    if (a->B * a->T * a->H == 0) return;
    by_head(*a, [&](auto zero, auto width, auto dropping) {
        using N = decltype(zero);
        constexpr int QUERIES = GROUPS<width, dropping> * OWN;
        constexpr size_t bytes =
            (TILE<N, width, QUERIES> + 4 * TILE<N, width, KEY_ROWS<N>>)*sizeof(N);
        static_assert(bytes <= MOST_SHARED, "a block's shared memory");
        DEV_LAUNCH((attention_kernel<N, width, dropping>),
                   dim3((unsigned)(a->B * a->H), blocks_for(a->T, QUERIES)),
                   dim3(ATTENTION_THREADS), bytes, s, heads_of<N>(*a, qkv, out, lse));
    });
}
