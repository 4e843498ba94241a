// attention_tiled.cu: causal attention for head sizes that the tensor-core kernels do not support:
// those that are no multiple of 8, or over 128. Tiles in shared memory hold floats. A block keeps
// 16 rows (queries or keys) and walks over those that they are multiplied with, 32 at a time; eight
// neighbouring lanes share a row. T x T is never stored, and one thread computes each sum.
#include "kernels/cuda/attention.cuh"

using namespace sgt;

enum { ROWS = 16, WALK = 32, SHARE = 8, THREADS = ROWS * SHARE, EACH = WALK / SHARE, MOST_D = 184 };
// floats from one row of weights to the next: odd, so that rows start in different banks
enum { WEIGHTS = WALK + 1 };

// Read rows of D numbers as floats, D + 1 apart; rows from `present` on become 0.
template <class T>
DEV void read_tile(float *tile, const T *rows, size_t ld, int count, int present, int D)
{
    for (int i = threadIdx.x; i < count * D; i += THREADS) {
        int row = i / D, d = i % D;
        tile[row * (D + 1) + d] = row < present ? dev::to_float(rows[row * ld + d]) : 0;
    }
}

DEV float dot(const float *x, const float *y, int D)
{
    float sum = 0;
    for (int d = 0; d < D; d++) sum += x[d] * y[d];
    return sum;
}

// Set sum[d] = sum[d] * keep + weights x tile, for those columns d of its row that this thread has.
DEV void weigh(float *sum, float keep, const float *weights, const float *tile, int D)
{
    for (int d = threadIdx.x % SHARE; d < D; d += SHARE) {
        float x = sum[d] * keep;
        for (int j = 0; j < WALK; j++) x += weights[j] * tile[j * (D + 1) + d];
        sum[d] = x;
    }
}

DEV float row_max(float x)
{
    for (int mask = SHARE / 2; mask; mask >>= 1) x = fmaxf(x, dev::shfl_xor(x, mask));
    return x;
}

DEV float row_sum(float x)
{
    for (int mask = SHARE / 2; mask; mask >>= 1) x += dev::shfl_xor(x, mask);
    return x;
}

template <bool DROP> DEV float factor(const Kept<DROP> &k, int query, int key)
{
    if constexpr (DROP) return k.four(query, key / 4 * 4) >> key % 4 & 1 ? k.keep : 0;
    else return 1;
}

template <class T, bool DROP> __global__ void __launch_bounds__(THREADS) tiled_kernel(Heads<T> a)
{
    Head h(a, blockIdx.x);
    Kept<DROP> kept(a, blockIdx.x);
    Sight<T> sight(a, blockIdx.x);
    int D = a.D, P = D + 1, row = threadIdx.x / SHARE, part = threadIdx.x % SHARE;
    int first = (gridDim.y - 1 - blockIdx.y) * ROWS, query = first + row, width = a.heads * D;
    float *own = (float *)dev::dyn_smem(), *keys = own + ROWS * P, *values = keys + WALK * P;
    float *out = values + WALK * P + row * P,
          *weights = values + WALK * P + ROWS * P + row * WEIGHTS;
    const T *qkv = a.qkv + h.packed;
    read_tile(own, qkv + first * h.packed_ld, h.packed_ld, ROWS, a.length - first, D);
    for (int d = part; d < D; d += SHARE) out[d] = 0;
    float max = NONE_YET, sum = 0;
    int from = sight.first_key(query);
    for (int key = sight.first_key(first) / WALK * WALK; key < first + ROWS && key < a.length;
         key += WALK) {
        read_tile(keys, qkv + width + key * h.packed_ld, h.packed_ld, WALK, a.length - key, D);
        read_tile(values, qkv + 2 * width + key * h.packed_ld, h.packed_ld, WALK, a.length - key,
                  D);
        dev::block_sync(); // the tiles are complete
        float s[EACH], before = max;
        DEV_UNROLL_FOR (int i = 0; i < EACH; i++) {
            int j = part + i * SHARE;
            s[i] = key + j > query || key + j < from
                       ? -INFINITY
                       : dot(own + row * P, keys + j * P, D) * a.scale_log2;
            max = fmaxf(max, s[i]);
        }
        max = row_max(max);
        float down = dev::exp2_fast(before - max);
        sum *= down;
        DEV_UNROLL_FOR (int i = 0; i < EACH; i++) {
            float p = dev::exp2_fast(s[i] - max);
            sum += p;
            weights[part + i * SHARE] = p * factor(kept, query, key + part + i * SHARE);
        }
        dev::warp_sync(); // eight lanes of one warp have computed the weights of a row
        weigh(out, down, weights, values, D);
        dev::block_sync(); // all have read tiles and weights before the next ones are written
    }
    sum = row_sum(sum);
    if (query >= a.length) return; // threads may leave here: no barrier or shuffle follows
    for (int d = part; d < D; d += SHARE)
        a.out[h.plain + query * h.plain_ld + d] = dev::from_float<T>(out[d] / sum);
    if (part == 0) a.lse[h.row + query] = (max + dev::log2_fast(sum)) * LN2;
}

// ---- backward: the formulas of attention_backward.cu ----

template <class T>
__global__ void __launch_bounds__(THREADS) tiled_delta_kernel(Heads<T> a, size_t rows)
{
    size_t i = (size_t)blockIdx.x * ROWS + threadIdx.x / SHARE; // index in (B, T, H)
    float sum = 0;
    if (i < rows)
        for (int d = threadIdx.x % SHARE; d < a.D; d += SHARE)
            sum += dev::to_float(a.dout[i * a.D + d]) * dev::to_float(a.out[i * a.D + d]);
    sum = row_sum(sum);
    size_t head = i % a.heads, place = i / a.heads;
    if (i < rows && threadIdx.x % SHARE == 0)
        a.delta[(place / a.length * a.heads + head) * a.length + place % a.length] = sum;
}

// The tiles a block keeps and walks over: (k, v) and (q, dout), or the other way around, so that s
// = kept[0] . walked[0] and dp = kept[1] . walked[1] in both cases.
template <class T> struct Pair {
    const T *first, *second;
    size_t first_ld, second_ld;

    // Read `rows` rows of both from row `at` on; rows from `length` on do not exist.
    DEV void read(float *const to[2], int at, int rows, int length, int D) const
    {
        read_tile(to[0], first + at * first_ld, first_ld, rows, length - at, D);
        read_tile(to[1], second + at * second_ld, second_ld, rows, length - at, D);
    }
};

// Eight blocks leave 64 registers per thread; if the compiler aims at more blocks, it spills.
template <class T, bool DROP, bool KEYS>
__global__ void __launch_bounds__(THREADS, 8) tiled_backward_kernel(Heads<T> a)
{
    Head h(a, blockIdx.x);
    Kept<DROP> drawn(a, blockIdx.x);
    Sight<T> sight(a, blockIdx.x);
    int D = a.D, P = D + 1, row = threadIdx.x / SHARE, part = threadIdx.x % SHARE;
    int first = blockIdx.y * ROWS, mine = first + row, width = a.heads * D;
    // queries before `seen` see key `mine`, or query `mine` sees keys from `seen` on
    int seen = KEYS ? sight.after_queries(mine) : sight.first_key(mine);
    const T *q = a.qkv + h.packed;
    Pair<T> queries = {q, a.dout + h.plain, h.packed_ld, h.plain_ld};
    Pair<T> keys = {q + width, q + 2 * width, h.packed_ld, h.packed_ld};
    Pair<T> kept = KEYS ? keys : queries, walked = KEYS ? queries : keys;
    float *own[2], *tile[2], *sum[2], *weights[2], *at = (float *)dev::dyn_smem();
    DEV_UNROLL_FOR (int i = 0; i < 2; i++, at += (2 * ROWS + WALK) * P + ROWS * WEIGHTS) {
        own[i] = at;
        tile[i] = at + ROWS * P;
        sum[i] = at + (ROWS + WALK) * P + row * P;
        weights[i] = at + (2 * ROWS + WALK) * P + row * WEIGHTS;
        for (int d = part; d < D; d += SHARE) sum[i][d] = 0;
    }
    kept.read(own, first, ROWS, a.length, D);
    int from = (KEYS ? first : sight.first_key(first)) / WALK * WALK;
    int end = KEYS                      ? sight.after_queries(first + ROWS - 1)
              : first + ROWS < a.length ? first + ROWS
                                        : a.length;
    for (int other = from; other < end; other += WALK) {
        walked.read(tile, other, WALK, a.length, D);
        dev::block_sync(); // the tiles are complete
        for (int j = part; j < WALK; j += SHARE) {
            int query = KEYS ? other + j : mine, key = KEYS ? mine : other + j;
            float p = 0, ds = 0, f = factor(drawn, query, key);
            if (key <= query && query < a.length && (KEYS ? query < seen : key >= seen)) {
                p = dev::exp2_fast(dot(own[0] + row * P, tile[0] + j * P, D) * a.scale_log2 -
                                   a.lse[h.row + query] * LOG2E);
                ds = p * (dot(own[1] + row * P, tile[1] + j * P, D) * f - a.delta[h.row + query]);
            }
            weights[0][j] = ds;
            weights[1][j] = p * f;
        }
        dev::warp_sync(); // eight lanes of one warp have computed the weights of a row
        weigh(sum[0], 1, weights[0], tile[0], D);
        if (KEYS) weigh(sum[1], 1, weights[1], tile[1], D);
        dev::block_sync(); // all have read tiles and weights before the next ones are written
    }
    if (mine >= a.length) return; // threads may leave here: no barrier or shuffle follows
    T *to = a.dqkv + h.packed + mine * h.packed_ld + (KEYS ? width : 0);
    for (int d = part; d < D; d += SHARE) {
        to[d] = dev::from_float<T>(sum[0][d] * a.scale);
        if (KEYS) to[width + d] = dev::from_float<T>(sum[1][d]);
    }
}

static constexpr size_t backward_bytes(size_t D)
{
    return 2 * ((2 * ROWS + WALK) * (D + 1) + ROWS * WEIGHTS) * sizeof(float);
}
static_assert(backward_bytes(MOST_D) <= MOST_SHARED, "a block's shared memory");

int sgt_cuda_attention_tiled_serves(size_t D) { return D >= 1 && D <= MOST_D; }

void sgt_cuda_attention_tiled(sgt_cuda_stream s, sgt_cuda_type type, void *out, float *lse,
                              const void *qkv, size_t B, size_t T, size_t H, size_t D, float scale,
                              const sgt_cuda_dropout *drop, const sgt_cuda_documents *documents)
{
    if (B * T * H == 0) return;
    by_dropout(drop, [&](auto dropping) {
        by_type(type, [&](auto zero) {
            using N = decltype(zero);
            size_t bytes = ((2 * ROWS + 2 * WALK) * (D + 1) + ROWS * WEIGHTS) * sizeof(float);
            DEV_LAUNCH((tiled_kernel<N, dropping>), dim3((unsigned)(B * H), blocks_for(T, ROWS)),
                       dim3(THREADS), bytes, s,
                       heads_of<N>(qkv, out, lse, T, H, D, scale, drop, documents));
        });
    });
}

void sgt_cuda_attention_tiled_backward(sgt_cuda_stream s, sgt_cuda_type type, void *dqkv,
                                       float *delta, const void *dout, const void *out,
                                       const float *lse, const void *qkv, size_t B, size_t T,
                                       size_t H, size_t D, float scale,
                                       const sgt_cuda_dropout *drop,
                                       const sgt_cuda_documents *documents)
{
    if (B * T * H == 0) return;
    by_dropout(drop, [&](auto dropping) {
        by_type(type, [&](auto zero) {
            using N = decltype(zero);
            Heads<N> a = heads_of<N>(qkv, out, lse, T, H, D, scale, drop, documents);
            a.delta = delta, a.dout = (const N *)dout, a.dqkv = (N *)dqkv;
            // the probability of a single key is 1: dq and dk are exactly 0, not rounding errors
            if (T == 1) a.scale = 0;
            size_t bytes = backward_bytes(D), rows = B * T * H;
            dim3 grid((unsigned)(B * H), blocks_for(T, ROWS)), block(THREADS);
            DEV_LAUNCH(tiled_delta_kernel<N>, dim3(blocks_for(rows, ROWS)), block, 0, s, a, rows);
            DEV_LAUNCH((tiled_backward_kernel<N, dropping, true>), grid, block, bytes, s, a);
            DEV_LAUNCH((tiled_backward_kernel<N, dropping, false>), grid, block, bytes, s, a);
        });
    });
}
